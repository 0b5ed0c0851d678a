// The specification of causal attention over whole texts, in plain C++; see embed.h for what Value means.
// The causal mask is the loop bound: what lies behind position t is never read.
#ifndef OCTAVO_KERNELS_REFERENCE_CAUSAL_ATTENTION_H_
#define OCTAVO_KERNELS_REFERENCE_CAUSAL_ATTENTION_H_

#include <cstddef>

namespace octavo::reference {

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

#endif  // OCTAVO_KERNELS_REFERENCE_CAUSAL_ATTENTION_H_
