// The shape and variant of a model, as its configuration states them.
#ifndef OCTAVO_ENGINE_CONFIG_H_
#define OCTAVO_ENGINE_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/activation_kind.h"

namespace octavo {

using TokenId = int32_t;  // an index into the vocabulary

struct ModelConfig {
  size_t width = 0;
  size_t num_heads = 0;
  size_t num_layers = 0;
  size_t context_length = 0;
  size_t vocabulary_size = 0;  // without padding rows
  size_t inner_width = 0;      // of the GELU network
  ActivationKind activation = ActivationKind::kGeluTanh;
  float layer_norm_epsilon = 1e-5f;
  std::optional<bool> tied;    // what the configuration says of the head, if anything
  std::optional<bool> biases;  // likewise of the biases
  // Special tokens: never printed; an end token ends a text. Ids beyond the vocabulary are dropped while reading (GPT-2's
  // default configuration names 50256 whatever the vocabulary).
  std::vector<TokenId> start_tokens, end_tokens, padding_tokens;
  // Whether the configuration itself gives the vocabulary's size; only then may embeddings have padding rows beyond it.
  bool states_vocabulary_size = false;

  size_t head_size() const { return width / num_heads; }
};

// The activation's name in configurations: gelu, gelu_new or relu.
std::string_view ActivationName(ActivationKind kind);

// Reads a configuration: a JSON object with n_embd, n_head, n_layer, n_positions, vocab_size, activation_function,
// layer_norm_epsilon, tie_word_embeddings, and optionally bias, n_inner, {bos,eos,pad}_token_id. Other keys are ignored, but those
// that would change the mathematics are refused. `vocabulary_size` stands in where vocab_size is absent.
// Throws Error; `where` names the source in it.
ModelConfig ParseConfig(std::string_view json, size_t vocabulary_size, std::string_view where);

// The inverse, with the names above, for the single-file form. `tied` and `biases` must be set.
std::string WriteConfig(const ModelConfig& config);

}  // namespace octavo

#endif  // OCTAVO_ENGINE_CONFIG_H_
