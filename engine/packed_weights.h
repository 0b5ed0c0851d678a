// A model's matrices in the packing that the vector kernels read.
#ifndef OCTAVO_ENGINE_PACKED_WEIGHTS_H_
#define OCTAVO_ENGINE_PACKED_WEIGHTS_H_

#include <vector>

#include "engine/aligned.h"
#include "engine/weights.h"
#include "kernels/packed_matrix.h"

namespace octavo {

// Owns what a PackedMatrix points to. Movable; matrix() stays valid while this lives and is not moved.
class PackedLinear {
 public:
  // `weight` is [num_inputs, bias.size()].
  PackedLinear(const std::vector<float>& weight, std::vector<float> bias);

  PackedMatrix matrix() const { return {weights_.data(), bias_.data(), num_inputs_, bias_.size()}; }

 private:
  AlignedFloats weights_;
  std::vector<float> bias_;
  size_t num_inputs_;
};

struct PackedLayer {
  PackedLinear c_attn, attn_proj, c_fc, mlp_proj;
};

struct PackedWeights {
  explicit PackedWeights(const Weights& weights);

  std::vector<PackedLayer> layers;
  PackedLinear lm_head;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_PACKED_WEIGHTS_H_
