// Dispatch of decode attention; see decode_attention.h.
#include "kernels/decode_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/decode_attention.cc"
#include "hwy/foreach_target.h"
// Behind foreach_target.
#include "kernels/decode_attention-inl.h"

#if HWY_ONCE
namespace octavo {

HWY_EXPORT(DecodeAttention);

void DecodeAttention(const float* q, const DecodeCache& cache, const int32_t* lengths, size_t num_heads,
                     size_t head_size, float* out, float* scratch) {
  HWY_DYNAMIC_DISPATCH(DecodeAttention)(q, cache, lengths, num_heads, head_size, out, scratch);
}

}  // namespace octavo
#endif  // HWY_ONCE
