// Fused query, key, value product: q to panels, keys and values straight into the cache.
#ifndef OCTAVO_KERNELS_QKV_H_
#define OCTAVO_KERNELS_QKV_H_

#include <cstddef>

#include "kernels/packed_matrix.h"

namespace octavo {

// Where the heads of one part (q, k or v) go: number i of head h of panel p at at + p·panel_stride + h·head_stride + 16·i, 16 rows.
struct HeadLayout {
  float* at = nullptr;  // aligned to 64 bytes
  size_t panel_stride = 0;
  size_t head_stride = 0;
};

// table = x · weight + bias, [num_rows, 3·W] = q | k | v, head h owns head_size numbers of each part.
//
//   x         panels of num_rows rows, W = num_heads · head_size features, aligned to 64 bytes
//   matrix    num_inputs W, num_outputs 3·W
//   tiles     which outputs are computed: those of these tiles; the others are not touched
//   q, k, v   as HeadLayout says; multiples of 16 floats; they must not overlap x or each other
//
// Rows behind num_rows may hold anything and come out as anything (up to kFewRows rows they are not touched). Order, error bound and cost:
// as MatMul.
void Qkv(const float* x, size_t num_rows, const PackedMatrix& matrix, size_t num_heads, size_t head_size,
         const HeadLayout& q, const HeadLayout& k, const HeadLayout& v, TileRange tiles = {});

}  // namespace octavo

#endif  // OCTAVO_KERNELS_QKV_H_
