// Vector body of decode attention; see decode_attention.h. Slots that every lane reads take the plain path; before them, where
// only some lanes have begun, a select keeps the others out.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_DECODE_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_DECODE_ATTENTION_INL_H_
#undef OCTAVO_KERNELS_DECODE_ATTENTION_INL_H_
#else
#define OCTAVO_KERNELS_DECODE_ATTENTION_INL_H_
#endif

#include "kernels/attention-inl.h"
#include "kernels/decode_attention.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

// Slots, or outputs, at once: eight chains hide the latency of a multiply-add.
constexpr size_t kChains = kManyRegisters ? 8 : 4;
constexpr size_t kDecodeBlock = HWY_MAX(size_t{1}, kChains / kVectorsPerPanel);

// raw[b] = q · k of slots b < kBlock, whose keys follow each other from `keys`.
template <size_t kBlock>
HWY_INLINE void RawScores(const float* HWY_RESTRICT q, const float* HWY_RESTRICT keys, size_t head_size,
                          float* HWY_RESTRICT raw) {
  const DF d;
  VF sum[kBlock][kVectorsPerPanel];
  OCTAVO_UNROLL
  for (size_t b = 0; b < kBlock; ++b) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) sum[b][v] = hn::Zero(d);
  }
  for (size_t i = 0; i < head_size; ++i) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      const VF query = hn::Load(d, q + i * kPanelRows + v * kLanes);
      OCTAVO_UNROLL
      for (size_t b = 0; b < kBlock; ++b) {
        sum[b][v] = hn::MulAdd(query, hn::Load(d, keys + (b * head_size + i) * kPanelRows + v * kLanes), sum[b][v]);
      }
    }
  }
  OCTAVO_UNROLL
  for (size_t b = 0; b < kBlock; ++b) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) hn::Store(sum[b][v], d, raw + b * kPanelRows + v * kLanes);
  }
}

// The slots a call reads, oldest first: number j of `count`, from ring slot `oldest` on.
struct SlotRange {
  size_t oldest, count, num_slots;
  // Calls run(j, slot, n) for each run of n slots that lie side by side, covering j in [begin, end).
  template <class Run>
  HWY_INLINE void ForRuns(size_t begin, size_t end, const Run& run) const {
    while (begin < end) {
      size_t slot = oldest + begin;
      if (slot >= num_slots) slot -= num_slots;
      const size_t n = HWY_MIN(end - begin, num_slots - slot);
      run(begin, slot, n);
      begin += n;
    }
  }
};

HWY_INLINE void AllRawScores(const float* q, const float* keys, const SlotRange& slots, size_t head_size, float* raw) {
  const size_t slot_floats = head_size * kPanelRows;
  slots.ForRuns(0, slots.count, [&](size_t j, size_t slot, size_t n) HWY_ATTR {
    for (; n >= kDecodeBlock; n -= kDecodeBlock, j += kDecodeBlock, slot += kDecodeBlock) {
      RawScores<kDecodeBlock>(q, keys + slot * slot_floats, head_size, raw + j * kPanelRows);
    }
    for (; n > 0; --n, ++j, ++slot) RawScores<1>(q, keys + slot * slot_floats, head_size, raw + j * kPanelRows);
  });
}

// Turns raw scores into unnormalised weights, in place; returns 1 / their sum. `starts` holds each lane's first j, `shared` the first
// that all lanes read.
HWY_INLINE VF WeightsInPlace(float* raw, size_t count, size_t shared, VF starts, VF scale) {
  const DF d;
  const VF lowest = hn::Set(d, -HUGE_VALF);
  VF largest = lowest;
  for (size_t j = 0; j < shared; ++j) {
    const auto begun = hn::Ge(hn::Set(d, static_cast<float>(j)), starts);
    largest = hn::Max(largest, hn::IfThenElse(begun, hn::Load(d, raw + j * kPanelRows), lowest));
  }
  for (size_t j = shared; j < count; ++j) largest = hn::Max(largest, hn::Load(d, raw + j * kPanelRows));
  largest = hn::Mul(largest, scale);
  VF sum = hn::Zero(d);
  for (size_t j = 0; j < shared; ++j) {
    float* at = raw + j * kPanelRows;
    const auto begun = hn::Ge(hn::Set(d, static_cast<float>(j)), starts);
    const VF weight = hn::IfThenElseZero(begun, AttentionWeight(hn::Load(d, at), scale, largest));
    sum = hn::Add(sum, weight);
    hn::Store(weight, d, at);
  }
  for (size_t j = shared; j < count; ++j) {
    float* at = raw + j * kPanelRows;
    const VF weight = AttentionWeight(hn::Load(d, at), scale, largest);
    sum = hn::Add(sum, weight);
    hn::Store(weight, d, at);
  }
  return hn::Div(hn::Set(d, 1.0f), sum);
}

// sum[b] += Σ weights[j] · v[slot, b] over n slots from `values`; where kSelect, only lanes that have begun by j take part.
template <size_t kBlock, bool kSelect>
HWY_INLINE void MixRun(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT values, size_t head_size, size_t n,
                       size_t j, const VF* starts, VF (&sum)[kBlock][kVectorsPerPanel]) {
  const DF d;
  for (size_t s = 0; s < n; ++s) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      const VF weight = hn::Load(d, weights + s * kPanelRows + v * kLanes);
      const auto begun = hn::Ge(hn::Set(d, static_cast<float>(j + s)), starts[v]);
      OCTAVO_UNROLL
      for (size_t b = 0; b < kBlock; ++b) {
        VF value = hn::Load(d, values + (s * head_size + b) * kPanelRows + v * kLanes);
        if constexpr (kSelect) value = hn::IfThenElseZero(begun, value);
        sum[b][v] = hn::MulAdd(weight, value, sum[b][v]);
      }
    }
  }
}

template <size_t kBlock>
HWY_INLINE void Mix(const float* weights, const float* values, const SlotRange& slots, size_t shared, size_t head_size,
                    const VF* starts, const VF* normalizer, float* out) {
  const DF d;
  VF sum[kBlock][kVectorsPerPanel];
  OCTAVO_UNROLL
  for (size_t b = 0; b < kBlock; ++b) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) sum[b][v] = hn::Zero(d);
  }
  const size_t slot_floats = head_size * kPanelRows;
  slots.ForRuns(0, shared, [&](size_t j, size_t slot, size_t n) HWY_ATTR {
    MixRun<kBlock, true>(weights + j * kPanelRows, values + slot * slot_floats, head_size, n, j, starts, sum);
  });
  slots.ForRuns(shared, slots.count, [&](size_t j, size_t slot, size_t n) HWY_ATTR {
    MixRun<kBlock, false>(weights + j * kPanelRows, values + slot * slot_floats, head_size, n, j, starts, sum);
  });
  OCTAVO_UNROLL
  for (size_t b = 0; b < kBlock; ++b) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      hn::Store(hn::Mul(sum[b][v], normalizer[v]), d, out + b * kPanelRows + v * kLanes);
    }
  }
}

HWY_NOINLINE void DecodeAttention(const float* q, const DecodeCache& cache, const int32_t* lengths, size_t num_heads,
                                  size_t head_size, float* out, float* scratch) {
  const DF d;
  size_t longest = 0, shortest = cache.num_slots;
  for (size_t r = 0; r < kPanelRows; ++r) {
    longest = HWY_MAX(longest, static_cast<size_t>(lengths[r]));
    shortest = HWY_MIN(shortest, static_cast<size_t>(lengths[r]));
  }
  const size_t shared = longest - shortest;
  const size_t newest = cache.newest_slot + 1;
  const SlotRange slots{newest >= longest ? newest - longest : newest + cache.num_slots - longest, longest,
                        cache.num_slots};
  HWY_ALIGN float first[kPanelRows];
  for (size_t r = 0; r < kPanelRows; ++r) first[r] = static_cast<float>(longest - static_cast<size_t>(lengths[r]));
  VF starts[kVectorsPerPanel], normalizer[kVectorsPerPanel];
  for (size_t v = 0; v < kVectorsPerPanel; ++v) starts[v] = hn::Load(d, first + v * kLanes);
  const VF scale = ScoreScale(head_size);

  for (size_t h = 0; h < num_heads; ++h) {
    const size_t feature = h * head_size * kPanelRows;
    AllRawScores(q + feature, cache.keys + h * cache.head_stride, slots, head_size, scratch);
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      normalizer[v] = WeightsInPlace(scratch + v * kLanes, slots.count, shared, starts[v], scale);
    }
    size_t i = 0;
    for (; i + kDecodeBlock <= head_size; i += kDecodeBlock) {
      Mix<kDecodeBlock>(scratch, cache.values + h * cache.head_stride + i * kPanelRows, slots, shared, head_size,
                        starts, normalizer, out + feature + i * kPanelRows);
    }
    for (; i < head_size; ++i) {
      Mix<1>(scratch, cache.values + h * cache.head_stride + i * kPanelRows, slots, shared, head_size, starts,
             normalizer, out + feature + i * kPanelRows);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_DECODE_ATTENTION_INL_H_
