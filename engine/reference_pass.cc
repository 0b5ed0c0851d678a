// The scalar forward pass; see reference_pass.h.
#include "engine/reference_pass.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "kernels/reference/activation.h"
#include "kernels/reference/causal_attention.h"
#include "kernels/reference/decode_attention.h"
#include "kernels/reference/embed.h"
#include "kernels/reference/layer_norm.h"
#include "kernels/reference/matmul.h"
#include "kernels/reference/qkv.h"
#include "kernels/strict_math.h"

namespace octavo {
namespace {

// `values` grown to at least `count`, and its data.
template <typename Value>
Value* Grow(std::vector<Value>& values, size_t count) {
  if (values.size() < count) values.resize(count);
  return values.data();
}

template <typename Value>
void Normalize(const Norm& norm, float epsilon, const Value* x, size_t rows, Value* out) {
  reference::LayerNorm(x, rows, norm.gain.size(), norm.gain.data(), norm.bias.data(), epsilon, out);
}

template <typename Value>
void Project(const Linear& linear, const Value* x, size_t rows, Value* out) {
  const size_t outputs = linear.bias.size();
  reference::MatMul(x, rows, linear.weight.size() / outputs, linear.weight.data(), linear.bias.data(), outputs, out);
}

}  // namespace

template <typename Value>
std::span<Value> ReferencePass<Value>::Read(std::span<const TokenId> tokens, Value* weights) {
  const ModelConfig& config = model_.config();
  const Weights& parameters = model_.weights();
  const size_t rows = tokens.size(), width = config.width, first = length_;
  assert(rows > 0 && first + rows <= config.context_length);
  std::vector<int32_t> positions(rows);
  std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first));
  length_ += rows;

  Value* x = Grow(x_, rows * width);
  Value* normed = Grow(normed_, rows * width);
  Value* projected = Grow(projected_, rows * width);
  Value* inner = Grow(inner_, rows * config.inner_width);
  Grow(mixed_, rows * width);
  reference::Embed(tokens.data(), positions.data(), rows, parameters.wte.data(), parameters.wpe.data(), width, x);
  for (size_t i = 0; i < config.num_layers; ++i) {
    const LayerWeights& layer = parameters.layers[i];
    Normalize(layer.ln_1, config.layer_norm_epsilon, x, rows, normed);
    Value* q = Grow(tables_[i], length_ * 3 * width) + first * 3 * width;
    reference::Qkv(normed, rows, width, layer.c_attn.weight.data(), layer.c_attn.bias.data(), 3 * width, q, q + width,
                   q + 2 * width);
    Attend(tables_[i], rows, weights ? weights + i * config.num_heads * rows * rows : nullptr);
    Project(layer.attn_proj, mixed_.data(), rows, projected);
    reference::AddResidual(projected, rows * width, x);

    Normalize(layer.ln_2, config.layer_norm_epsilon, x, rows, normed);
    Project(layer.c_fc, normed, rows, inner);
    reference::Activate(config.activation, inner, rows * config.inner_width, inner);
    Project(layer.mlp_proj, inner, rows, projected);
    reference::AddResidual(projected, rows * width, x);
  }
  return {x, rows * width};
}

template <typename Value>
void ReferencePass<Value>::Attend(const std::vector<Value>& table, size_t num_new, Value* weights) {
  const ModelConfig& config = model_.config();
  const size_t width = config.width, first = length_ - num_new;
  Value* scores = Grow(scores_, length_);
  if (first == 0) {
    reference::CausalAttention(table.data(), 1, num_new, config.num_heads, config.head_size(), mixed_.data(), weights,
                               scores);
    return;
  }
  assert(!weights);
  for (size_t i = 0; i < num_new; ++i) {
    const Value* query = table.data() + (first + i) * 3 * width;
    reference::DecodeAttention<Value>(query, table.data() + width, table.data() + 2 * width, 3 * width, first + i + 1,
                                      config.num_heads, config.head_size(), mixed_.data() + i * width, nullptr, 0,
                                      scores);
  }
}

template <typename Value>
std::span<const Value> ReferencePass<Value>::Logits(std::span<Value> x, size_t rows) {
  const ModelConfig& config = model_.config();
  const Weights& parameters = model_.weights();
  Value* last = x.data() + x.size() - rows * config.width;
  Normalize(parameters.ln_f, config.layer_norm_epsilon, last, rows, normed_.data());
  Value* logits = Grow(logits_, rows * config.vocabulary_size);
  reference::MatMul<Value>(normed_.data(), rows, config.width, parameters.lm_head.data(), nullptr,
                           config.vocabulary_size, logits);
  return {logits, rows * config.vocabulary_size};
}

template <typename Value>
std::span<const Value> ReferencePass<Value>::ReadWithWeights(std::span<const TokenId> tokens,
                                                             std::vector<Value>& weights) {
  assert(length_ == 0);
  const ModelConfig& config = model_.config();
  weights.resize(config.num_layers * config.num_heads * tokens.size() * tokens.size());
  return Logits(Read(tokens, weights.data()), tokens.size());
}

template class ReferencePass<double>;
template class ReferencePass<float>;

}  // namespace octavo
