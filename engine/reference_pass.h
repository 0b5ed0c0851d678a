// The forward pass over one text, in the scalar reference kernels: the architecture as formulas, with a cache of keys and values.
// Value is double (the specification) or float (the plain pass whose error scales the bounds of whole-model tests).
#ifndef OCTAVO_ENGINE_REFERENCE_PASS_H_
#define OCTAVO_ENGINE_REFERENCE_PASS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "engine/model.h"

namespace octavo {

template <typename Value>
class ReferencePass {
 public:
  // `model` must outlive the pass. Memory grows with the positions read: 3·layers·width Values each.
  explicit ReferencePass(const Model& model) : model_(model), tables_(model.config().num_layers) {}

  // Positions read so far; at most context_length.
  size_t length() const { return length_; }

  // Forgets all positions.
  void Reset() { length_ = 0; }

  // Reads `tokens` (at least one) at the positions from length() on, which must not exceed the context.
  // The result, [rows, vocabulary_size], is valid until the next call: logits of each token for ReadAll, of the last for ReadLast.
  std::span<const Value> ReadAll(std::span<const TokenId> tokens) {
    return Logits(Read(tokens, nullptr), tokens.size());
  }
  std::span<const Value> ReadLast(std::span<const TokenId> tokens) { return Logits(Read(tokens, nullptr), 1); }

  // As ReadAll on an empty pass; also fills `weights` with [layers, heads, T, T], T = tokens.size(): what each head reads.
  std::span<const Value> ReadWithWeights(std::span<const TokenId> tokens, std::vector<Value>& weights);

 private:
  // Runs the blocks over the new positions; returns their residual streams, [tokens, width].
  std::span<Value> Read(std::span<const TokenId> tokens, Value* weights);
  void Attend(const std::vector<Value>& table, size_t num_new, Value* weights);
  // Final norm and head over the last `rows` rows of `x`.
  std::span<const Value> Logits(std::span<Value> x, size_t rows);

  const Model& model_;
  size_t length_ = 0;
  std::vector<std::vector<Value>>
      tables_;  // by layer: [length, 3·width], q | k | v of every position; k and v are the cache
  std::vector<Value> x_, normed_, mixed_, inner_, projected_, scores_, logits_;
};

extern template class ReferencePass<double>;
extern template class ReferencePass<float>;

}  // namespace octavo

#endif  // OCTAVO_ENGINE_REFERENCE_PASS_H_
