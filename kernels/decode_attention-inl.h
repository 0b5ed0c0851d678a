// Vector body of decode attention; see decode_attention.h. Slots that every lane reads take the plain path; before them, where
// only some lanes have begun, a select keeps the others out.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_DECODE_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_DECODE_ATTENTION_INL_H_
#undef OCTAVO_KERNELS_DECODE_ATTENTION_INL_H_
#else
#define OCTAVO_KERNELS_DECODE_ATTENTION_INL_H_
#endif

#include <cmath>

#include "kernels/attention-inl.h"
#include "kernels/decode_attention.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

// Slots scored at once, and numbers of a head mixed at once: eight chains hide the latency of a multiply-add; in scoring, 16 registers
// hold four.
constexpr size_t kScoreSlots = HWY_MAX(size_t{1}, (kManyRegisters ? 8 : 4) / kVectorsPerPanel);
constexpr size_t kMixNumbers = HWY_MAX(size_t{1}, 8 / kVectorsPerPanel);

// Numbers of a head in the two forms of the cache: as floats, and as pairs of bfloat16.
HWY_INLINE size_t SlotSize(const float*, size_t head_size) { return head_size; }
HWY_INLINE size_t SlotSize(const uint32_t*, size_t head_size) { return NumPairs(head_size); }

// Elements from a slot's first number to its number i, which is even for pairs.
HWY_INLINE size_t SkipNumbers(const float*, size_t i) { return i * kPanelRows; }
HWY_INLINE size_t SkipNumbers(const uint32_t*, size_t i) { return i / 2 * kPanelRows; }

// Number i of a slot, vector v.
HWY_INLINE VF LoadNumber(const float* HWY_RESTRICT slot, size_t i, size_t v) {
  return hn::Load(DF(), slot + i * kPanelRows + v * kLanes);
}
HWY_INLINE VF LoadNumber(const uint32_t* HWY_RESTRICT slot, size_t i, size_t v) {
  const hn::RebindToUnsigned<DF> du;
  const auto pair = hn::Load(du, slot + i / 2 * kPanelRows + v * kLanes);
  return hn::BitCast(DF(), i % 2 ? hn::And(pair, hn::Set(du, 0xFFFF0000u)) : hn::ShiftLeft<16>(pair));
}

// Which lanes read slot number j of the range. `starts` holds each lane's first j.
HWY_INLINE hn::Mask<DF> HasBegun(size_t j, VF starts) { return hn::Ge(hn::Set(DF(), static_cast<float>(j)), starts); }

// The larger of `largest` and, where kSelect only in lanes that have begun, `score` of slot j.
template <bool kSelect>
HWY_INLINE VF MaxScore(VF largest, VF score, size_t j, VF starts) {
  const VF larger = hn::Max(largest, score);
  if constexpr (kSelect) return hn::IfThenElse(HasBegun(j, starts), larger, largest);
  return larger;
}

// sum[b] += q_i · k_i of kBlock slots.
template <size_t kBlock, typename T>
HWY_INLINE void AddProducts(const float* HWY_RESTRICT q, const T* const (&keys)[kBlock], size_t skip, size_t i,
                            VF (&sum)[kBlock][kVectorsPerPanel]) {
  OCTAVO_UNROLL
  for (size_t v = 0; v < kVectorsPerPanel; ++v) {
    const VF query = hn::Load(DF(), q + i * kPanelRows + v * kLanes);
    OCTAVO_UNROLL
    for (size_t b = 0; b < kBlock; ++b) {
      sum[b][v] = hn::MulAdd(query, LoadNumber(keys[b] + skip, i, v), sum[b][v]);
    }
  }
}

// raw[j + b] = q · k of the slots at places[j + b], b < kBlock; raises `largest` to those that a lane reads.
template <size_t kBlock, bool kSelect, typename T>
HWY_INLINE void RawScores(const float* HWY_RESTRICT q, const T* keys, const uint32_t* places, size_t j,
                          size_t head_size, const VF* starts, float* HWY_RESTRICT raw,
                          VF (&largest)[kVectorsPerPanel]) {
  const DF d;
  const T* key[kBlock];
  VF sum[kBlock][kVectorsPerPanel];
  OCTAVO_UNROLL
  for (size_t b = 0; b < kBlock; ++b) {
    key[b] = keys + places[j + b] * SlotSize(keys, head_size) * kPanelRows;
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) sum[b][v] = hn::Zero(d);
  }
  // By two, so that which half of a pair is wanted is known when this is compiled.
  for (size_t i = 0; i + 2 <= head_size; i += 2) {
    AddProducts<kBlock>(q + i * kPanelRows, key, SkipNumbers(keys, i), 0, sum);
    AddProducts<kBlock>(q + i * kPanelRows, key, SkipNumbers(keys, i), 1, sum);
  }
  if (head_size % 2) {
    const size_t i = head_size - 1;
    AddProducts<kBlock>(q + i * kPanelRows, key, SkipNumbers(keys, i), 0, sum);
  }
  OCTAVO_UNROLL
  for (size_t b = 0; b < kBlock; ++b) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      hn::Store(sum[b][v], d, raw + (j + b) * kPanelRows + v * kLanes);
      largest[v] = MaxScore<kSelect>(largest[v], sum[b][v], j + b, starts[v]);
    }
  }
}

// Raw scores of slots [begin, end), kHeadSize numbers each, whose query stays in registers: one slot at a time.
template <size_t kHeadSize, bool kSelect, typename T>
HWY_INLINE void SmallHeadScores(const float* HWY_RESTRICT q, const T* HWY_RESTRICT keys,
                                const uint32_t* HWY_RESTRICT places, size_t begin, size_t end, const VF* starts,
                                float* HWY_RESTRICT raw, VF (&largest)[kVectorsPerPanel]) {
  const DF d;
  VF query[kHeadSize][kVectorsPerPanel];
  OCTAVO_UNROLL
  for (size_t i = 0; i < kHeadSize; ++i) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) query[i][v] = hn::Load(d, q + i * kPanelRows + v * kLanes);
  }
  for (size_t j = begin; j < end; ++j) {
    const T* HWY_RESTRICT key = keys + places[j] * SlotSize(keys, kHeadSize) * kPanelRows;
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      VF sum = hn::Zero(d);
      OCTAVO_UNROLL
      for (size_t i = 0; i < kHeadSize; ++i) sum = hn::MulAdd(query[i][v], LoadNumber(key, i, v), sum);
      hn::Store(sum, d, raw + j * kPanelRows + v * kLanes);
      largest[v] = MaxScore<kSelect>(largest[v], sum, j, starts[v]);
    }
  }
}

// Raw scores of slots [begin, end), the largest that each lane reads. Where kSelect, some lanes begin behind `begin`.
template <bool kSelect, typename T>
HWY_INLINE void RangeScores(const float* q, const T* keys, const uint32_t* places, size_t begin, size_t end,
                            size_t head_size, const VF* starts, float* raw, VF (&largest)[kVectorsPerPanel]) {
  if constexpr (kManyRegisters && kVectorsPerPanel == 1) {
    if (head_size == 8) return SmallHeadScores<8, kSelect>(q, keys, places, begin, end, starts, raw, largest);
  }
  size_t j = begin;
  for (; j + kScoreSlots <= end; j += kScoreSlots)
    RawScores<kScoreSlots, kSelect>(q, keys, places, j, head_size, starts, raw, largest);
  for (; j < end; ++j) RawScores<1, kSelect>(q, keys, places, j, head_size, starts, raw, largest);
}

// All raw scores and the largest that each lane reads. `shared` is the first slot that all lanes read.
template <typename T>
HWY_INLINE void AllRawScores(const float* q, const T* keys, const uint32_t* places, size_t shared, size_t count,
                             size_t head_size, const VF* starts, float* raw, VF (&largest)[kVectorsPerPanel]) {
  for (size_t v = 0; v < kVectorsPerPanel; ++v) largest[v] = hn::Set(DF(), -HUGE_VALF);
  RangeScores<true>(q, keys, places, 0, shared, head_size, starts, raw, largest);
  RangeScores<false>(q, keys, places, shared, count, head_size, starts, raw, largest);
}

// Where weights come from: raw scores are made into weights and summed on the way, for this pass alone or left in their place for the next
// ones; or an earlier pass left them.
enum class Weighing { kMake, kMakeAndKeep, kReady };

// sum + weight · value in lanes that have begun, sum in the others, whatever their value is.
HWY_INLINE VF MulAddWhere(hn::Mask<DF> has_begun, VF weight, VF value, VF sum) {
  // One instruction where masks are registers of their own, two elsewhere; the same bits, for a weight of 0 adds 0 to a sum that is 0 still.
  if constexpr (HWY_TARGET == HWY_AVX3) return hn::IfThenElse(has_begun, hn::MulAdd(weight, value, sum), sum);
  return hn::MulAdd(weight, hn::IfThenElseZero(has_begun, value), sum);
}

// sum[b] += Σ weight · v[slot, b] over slots [begin, end). Where kSelect, only lanes that have begun take part. One slot at a time: four side by
// side, as in causal attention, ran at 169 ns a character of `tiny` where this took 142 (Zen 5, AVX-512).
template <size_t kBlock, bool kSelect, Weighing kWeigh, typename T>
HWY_INLINE void MixSlots(float* HWY_RESTRICT weights, const T* HWY_RESTRICT values, const uint32_t* HWY_RESTRICT places,
                         size_t parity, size_t head_size, size_t begin, size_t end, const VF* starts,
                         Softmaxer& softmaxer, VF (&sum)[kBlock][kVectorsPerPanel]) {
  const DF d;
  for (size_t j = begin; j < end; ++j) {
    float* at = weights + j * kPanelRows;
    const T* HWY_RESTRICT slot = values + places[j] * SlotSize(values, head_size) * kPanelRows;
    VF weight[kVectorsPerPanel];
    if constexpr (kWeigh != Weighing::kReady) {
      const auto keep = [&](size_t, size_t v, VF w)
                            HWY_ATTR { return kSelect ? hn::IfThenElseZero(HasBegun(j, starts[v]), w) : w; };
      softmaxer.Weigh<1, kWeigh == Weighing::kMakeAndKeep>(at, keep, weight);
    } else {
      OCTAVO_UNROLL
      for (size_t v = 0; v < kVectorsPerPanel; ++v) weight[v] = hn::Load(d, at + v * kLanes);
    }
    OCTAVO_UNROLL
    for (size_t b = 0; b < kBlock; ++b) {
      OCTAVO_UNROLL
      for (size_t v = 0; v < kVectorsPerPanel; ++v) {
        const VF value = LoadNumber(slot, b + parity, v);
        sum[b][v] = kSelect ? MulAddWhere(HasBegun(j, starts[v]), weight[v], value, sum[b][v])
                            : hn::MulAdd(weight[v], value, sum[b][v]);
      }
    }
  }
}

// out[i + b] for b < kBlock; i is even where kBlock is.
template <size_t kBlock, Weighing kWeigh, typename T>
HWY_INLINE void Mix(float* weights, const T* values, const uint32_t* places, size_t i, size_t shared, size_t count,
                    size_t head_size, const VF* starts, Softmaxer& softmaxer, float* out) {
  const DF d;
  VF sum[kBlock][kVectorsPerPanel];
  OCTAVO_UNROLL
  for (size_t b = 0; b < kBlock; ++b) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) sum[b][v] = hn::Zero(d);
  }
  const size_t parity = kBlock == 1 ? i % 2 : 0;
  values += SkipNumbers(values, i - parity);
  out += i * kPanelRows;
  MixSlots<kBlock, true, kWeigh>(weights, values, places, parity, head_size, 0, shared, starts, softmaxer, sum);
  MixSlots<kBlock, false, kWeigh>(weights, values, places, parity, head_size, shared, count, starts, softmaxer, sum);
  OCTAVO_UNROLL
  for (size_t v = 0; v < kVectorsPerPanel; ++v) {
    const VF normalizer = softmaxer.Normalizer(v);
    OCTAVO_UNROLL
    for (size_t b = 0; b < kBlock; ++b) hn::Store(hn::Mul(sum[b][v], normalizer), d, out + b * kPanelRows + v * kLanes);
  }
}

template <typename T>
HWY_INLINE void AttendCache(const float* q, const DecodeCacheOf<T>& cache, const int32_t* lengths, size_t num_heads,
                            size_t head_size, float* out, float* scratch) {
  const DF d;
  size_t longest = 0, shortest = cache.num_slots;
  for (size_t r = 0; r < kPanelRows; ++r) {
    longest = HWY_MAX(longest, static_cast<size_t>(lengths[r]));
    shortest = HWY_MIN(shortest, static_cast<size_t>(lengths[r]));
  }
  const size_t shared = longest - shortest;
  const size_t newest = cache.newest_slot + 1;
  // The table goes round twice, so this is a run of it.
  const uint32_t* places = cache.places + (newest >= longest ? newest : newest + cache.num_slots) - longest;
  HWY_ALIGN float first[kPanelRows];
  for (size_t r = 0; r < kPanelRows; ++r) first[r] = static_cast<float>(longest - static_cast<size_t>(lengths[r]));
  VF starts[kVectorsPerPanel];
  for (size_t v = 0; v < kVectorsPerPanel; ++v) starts[v] = hn::Load(d, first + v * kLanes);
  const VF scale = ScoreScale(head_size);

  for (size_t h = 0; h < num_heads; ++h) {
    const size_t feature = h * head_size * kPanelRows;
    const T* values = cache.values + h * cache.head_stride;
    float* to = out + feature;
    VF largest[kVectorsPerPanel];
    AllRawScores(q + feature, cache.keys + h * cache.head_stride, places, shared, longest, head_size, starts, scratch,
                 largest);
    Softmaxer softmaxer(scale, largest);
    // The first block makes the weights, and keeps them where others follow.
    size_t i = head_size >= kMixNumbers ? kMixNumbers : 1;
    if (head_size == kMixNumbers) {
      Mix<kMixNumbers, Weighing::kMake>(scratch, values, places, 0, shared, longest, head_size, starts, softmaxer, to);
    } else if (i == kMixNumbers) {
      Mix<kMixNumbers, Weighing::kMakeAndKeep>(scratch, values, places, 0, shared, longest, head_size, starts,
                                               softmaxer, to);
    } else {
      Mix<1, Weighing::kMakeAndKeep>(scratch, values, places, 0, shared, longest, head_size, starts, softmaxer, to);
    }
    for (; kMixNumbers > 1 && i + kMixNumbers <= head_size; i += kMixNumbers)
      Mix<kMixNumbers, Weighing::kReady>(scratch, values, places, i, shared, longest, head_size, starts, softmaxer, to);
    for (; i < head_size; ++i)
      Mix<1, Weighing::kReady>(scratch, values, places, i, shared, longest, head_size, starts, softmaxer, to);
  }
}

HWY_NOINLINE void DecodeAttention(const float* q, const DecodeCache& cache, const int32_t* lengths, size_t num_heads,
                                  size_t head_size, float* out, float* scratch) {
  AttendCache(q, cache, lengths, num_heads, head_size, out, scratch);
}

HWY_NOINLINE void PairedDecodeAttention(const float* q, const PairedDecodeCache& cache, const int32_t* lengths,
                                        size_t num_heads, size_t head_size, float* out, float* scratch) {
  AttendCache(q, cache, lengths, num_heads, head_size, out, scratch);
}

// The bits of x as bfloat16 in the upper half, rounded to nearest, ties to even; zeros below. NaN is kept from becoming an infinity.
HWY_INLINE hn::Vec<hn::RebindToUnsigned<DF>> Bfloat16Bits(VF x) {
  const hn::RebindToUnsigned<DF> du;
  const auto bits = hn::BitCast(du, x);
  const auto tie = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7FFF)), tie);
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
  const auto chosen = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
  return hn::And(chosen, hn::Set(du, 0xFFFF0000u));
}

HWY_NOINLINE void RoundToBfloat16(float* x, size_t count) {
  const DF d;
  for (float* end = x + count * kPanelRows; x != end; x += kLanes)
    hn::Store(hn::BitCast(d, Bfloat16Bits(hn::Load(d, x))), d, x);
}

HWY_NOINLINE void StorePairs(const float* from, size_t num_heads, size_t head_size, uint32_t* to, size_t head_stride) {
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  for (size_t h = 0; h < num_heads; ++h, to += head_stride) {
    uint32_t* word = to;
    for (size_t i = 0; i < head_size; i += 2, from += kPanelRows) {
      const bool has_odd = i + 1 < head_size;
      for (size_t v = 0; v < kPanelRows; v += kLanes) {
        const auto even = hn::ShiftRight<16>(Bfloat16Bits(hn::Load(d, from + v)));
        const auto odd = has_odd ? Bfloat16Bits(hn::Load(d, from + kPanelRows + v)) : hn::Zero(du);
        hn::Store(hn::Or(even, odd), du, word + v);
      }
      word += kPanelRows;
      if (has_odd) from += kPanelRows;
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_DECODE_ATTENTION_INL_H_
