// The specification of the fused query, key, value product, in plain C++; see embed.h for what Value means.
#ifndef OCTAVO_KERNELS_REFERENCE_QKV_H_
#define OCTAVO_KERNELS_REFERENCE_QKV_H_

#include <cstddef>

namespace octavo::reference {

// table = x · weight + bias, cut into its three parts: q = columns [0, width), k = [width, 2·width), v = [2·width, 3·width).
// Head h owns the head_size = width / num_heads columns from h·head_size in each part.
//
//   x               [num_rows, width]
//   weight, bias    [width, 3·width], [3·width] (or null for zeros)
//   q, k, v         row r at r·stride, width numbers each; stride ≥ width. They must not overlap x or each other
//                   (three parts of one [num_rows, 3·width] table with stride 3·width are well).
//
// Cost: 6·num_rows·width² FLOP.
template <typename Value>
void Qkv(const Value* x, size_t num_rows, size_t width, const float* weight, const float* bias, size_t stride, Value* q,
         Value* k, Value* v);

}  // namespace octavo::reference

#endif  // OCTAVO_KERNELS_REFERENCE_QKV_H_
