// Packing of a model's matrices; see packed_weights.h.
#include "engine/packed_weights.h"

#include <utility>

#include "kernels/strict_math.h"

namespace octavo {
namespace {

PackedLinear Pack(const Linear& linear) { return PackedLinear(linear.weight, linear.bias); }

}  // namespace

PackedLinear::PackedLinear(const std::vector<float>& weight, std::vector<float> bias)
    : bias_(std::move(bias)), num_inputs_(weight.size() / bias_.size()) {
  weights_.resize(PackedFloats(num_inputs_, bias_.size()));
  PackMatrix(weight.data(), num_inputs_, bias_.size(), weights_.data());
}

PackedWeights::PackedWeights(const Weights& weights)
    : lm_head(weights.lm_head, std::vector<float>(weights.lm_head.size() / weights.ln_f.gain.size(), 0.0f)) {
  layers.reserve(weights.layers.size());
  for (const LayerWeights& layer : weights.layers) {
    layers.push_back({Pack(layer.c_attn), Pack(layer.attn_proj), Pack(layer.c_fc), Pack(layer.mlp_proj)});
  }
}

}  // namespace octavo
