// A model's parameters as the kernels want them, gathered from the tensors of a file in whichever variant it stores them.
#ifndef OCTAVO_ENGINE_WEIGHTS_H_
#define OCTAVO_ENGINE_WEIGHTS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config.h"
#include "engine/safetensors.h"

namespace octavo {

// y = x · weight + bias
struct Linear {
  std::vector<float> weight;  // [inputs, outputs]
  std::vector<float> bias;    // [outputs]; zeros where the file has none
};

struct Norm {
  std::vector<float> gain, bias;  // [width]; bias zeros where the file has none
};

struct LayerWeights {
  Norm ln_1;
  Linear c_attn;     // [width, 3 · width], columns q | k | v
  Linear attn_proj;  // [width, width]
  Norm ln_2;
  Linear c_fc;      // [width, inner_width]
  Linear mlp_proj;  // [inner_width, width]
};

struct Weights {
  std::vector<float> wte;  // [vocabulary_size, width]
  std::vector<float> wpe;  // [context_length, width]
  std::vector<LayerWeights> layers;
  Norm ln_f;
  std::vector<float> lm_head;  // [width, vocabulary_size], also where the head is tied
};

// How a file stores what Weights holds.
struct StorageInfo {
  std::string type;         // F32, F16, BF16, F64, or "mixed (F16, F32)"
  std::string orientation;  // "[out, in]" or "[in, out]"
  bool tied = false;
  bool biases = false;
  size_t padding_rows = 0;    // embedding rows beyond the vocabulary
  size_t num_parameters = 0;  // distinct ones, without padding rows and masks
};

// Gathers the parameters of a model of shape `config` from `tensors`: any of the prefixes transformer., _orig_mod. and module. in any
// order, either orientation, tied or not, biases or not. Throws Error that names `where`, the tensor, what was expected and found;
// leftover tensors, doubles and contradictions are errors.
Weights GatherWeights(const std::vector<Tensor>& tensors, const ModelConfig& config, std::string_view where,
                      StorageInfo& info);

}  // namespace octavo

#endif  // OCTAVO_ENGINE_WEIGHTS_H_
