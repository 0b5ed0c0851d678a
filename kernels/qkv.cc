// Dispatch of the fused query, key, value product; see qkv.h.
#include "kernels/qkv.h"

#include "kernels/strict_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/qkv.cc"
#include "hwy/foreach_target.h"
// Behind foreach_target.
#include "kernels/qkv-inl.h"

#if HWY_ONCE
namespace octavo {

HWY_EXPORT(Qkv);

void Qkv(const float* x, size_t num_rows, const PackedMatrix& matrix, size_t num_heads, size_t head_size,
         const HeadLayout& q, const HeadLayout& k, const HeadLayout& v, TileRange tiles) {
  HWY_DYNAMIC_DISPATCH(Qkv)(x, num_rows, matrix, num_heads, head_size, q, k, v, tiles);
}

}  // namespace octavo
#endif  // HWY_ONCE
