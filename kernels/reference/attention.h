// The specification of attention, in plain C++: whole texts (causal) and one new position over a cache (decode).
// See embed.h for what Value means. The causal mask is the loop bound: what lies behind position t is never read.
#ifndef OCTAVO_KERNELS_REFERENCE_ATTENTION_H_
#define OCTAVO_KERNELS_REFERENCE_ATTENTION_H_

#include <cstddef>

namespace octavo::reference {

// One query position against a cache that holds `length` positions, its own the last of them. Per head h, with S = head_size:
//   score[s]  = Σ_i query[h·S + i] · keys[s, h·S + i] / sqrt(S)      for s < length
//   weight[s] = exp(score[s] - largest score) / Σ_s exp(score[s] - largest score)
//   out[h·S + i] = Σ_s weight[s] · values[s, h·S + i]
//
//   query          [num_heads · head_size]
//   keys, values   position s at s·stride, num_heads·head_size numbers; stride ≥ num_heads·head_size
//   out            [num_heads · head_size], must not overlap the inputs
//   weights        null, or [num_heads, weights_stride] of which [h, 0…length) is written; weights_stride ≥ length
//   scratch        [length]
//
// Preconditions: length ≥ 1. Cost: 4·num_heads·head_size·length FLOP.
// Source: Vaswani et al., "Attention Is All You Need" (2017), section 3.2.1.
template <typename Value>
void DecodeAttention(const Value* query, const Value* keys, const Value* values, size_t stride, size_t length,
                     size_t num_heads, size_t head_size, Value* out, Value* weights, size_t weights_stride,
                     Value* scratch);

// Every position of every row reads itself and those before it, as DecodeAttention does with length = t + 1.
//
//   qkv       [num_rows · length, 3 · width], width = num_heads·head_size, columns q | k | v
//   out       [num_rows · length, width], must not overlap qkv
//   weights   null, or [num_rows, num_heads, length, length]; above the diagonal zeros are written
//   scratch   [length]
//
// Cost: 2·num_rows·width·length·(length + 1) FLOP.
template <typename Value>
void CausalAttention(const Value* qkv, size_t num_rows, size_t length, size_t num_heads, size_t head_size, Value* out,
                     Value* weights, Value* scratch);

}  // namespace octavo::reference

#endif  // OCTAVO_KERNELS_REFERENCE_ATTENTION_H_
