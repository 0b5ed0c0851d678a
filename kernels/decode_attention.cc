// Dispatch of decode attention; see decode_attention.h.
#include "kernels/decode_attention.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "kernels/strict_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/decode_attention.cc"
#include "hwy/foreach_target.h"
// Behind foreach_target.
#include "kernels/decode_attention-inl.h"

#if HWY_ONCE
namespace octavo {

HWY_EXPORT(DecodeAttention);
HWY_EXPORT(PairedDecodeAttention);
HWY_EXPORT(RoundToBfloat16);
HWY_EXPORT(StorePairs);

void FillPlaces(size_t num_slots, bool scattered, uint32_t* places) {
  std::iota(places, places + num_slots, 0u);
  std::minstd_rand random;  // the same everywhere
  for (size_t left = num_slots; scattered && left > 1; --left) std::swap(places[left - 1], places[random() % left]);
  std::copy(places, places + num_slots, places + num_slots);
}

void DecodeAttention(const float* q, const DecodeCache& cache, const int32_t* lengths, size_t num_heads,
                     size_t head_size, float* out, float* scratch) {
  HWY_DYNAMIC_DISPATCH(DecodeAttention)(q, cache, lengths, num_heads, head_size, out, scratch);
}

void DecodeAttention(const float* q, const PairedDecodeCache& cache, const int32_t* lengths, size_t num_heads,
                     size_t head_size, float* out, float* scratch) {
  HWY_DYNAMIC_DISPATCH(PairedDecodeAttention)(q, cache, lengths, num_heads, head_size, out, scratch);
}

void RoundToBfloat16(float* x, size_t count) { HWY_DYNAMIC_DISPATCH(RoundToBfloat16)(x, count); }

void StorePairs(const float* from, size_t num_heads, size_t head_size, uint32_t* to, size_t head_stride) {
  HWY_DYNAMIC_DISPATCH(StorePairs)(from, num_heads, head_size, to, head_stride);
}

}  // namespace octavo
#endif  // HWY_ONCE
