// The specification of attention for one new position over a cache, in plain C++; see embed.h for what Value means.
// What lies behind the cache's length is never read.
#ifndef OCTAVO_KERNELS_REFERENCE_DECODE_ATTENTION_H_
#define OCTAVO_KERNELS_REFERENCE_DECODE_ATTENTION_H_

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

}  // namespace octavo::reference

#endif  // OCTAVO_KERNELS_REFERENCE_DECODE_ATTENTION_H_
