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

// raw[b] = q · k of slots b < kBlock, whose keys follow each other from `keys`; raises `largest` to them.
template <size_t kBlock>
HWY_INLINE void RawScores(const float* HWY_RESTRICT q, const float* HWY_RESTRICT keys, size_t head_size,
                          float* HWY_RESTRICT raw, VF (&largest)[kVectorsPerPanel]) {
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
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      hn::Store(sum[b][v], d, raw + b * kPanelRows + v * kLanes);
      largest[v] = hn::Max(largest[v], sum[b][v]);
    }
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

// Raw scores of slots [begin, end) of the range; the largest of each lane, whatever it may read of them.
HWY_INLINE void RangeScores(const float* q, const float* keys, const SlotRange& slots, size_t begin, size_t end,
                            size_t head_size, float* raw, VF (&largest)[kVectorsPerPanel]) {
  const size_t slot_floats = head_size * kPanelRows;
  slots.ForRuns(begin, end, [&](size_t j, size_t slot, size_t n) HWY_ATTR {
    for (; n >= kDecodeBlock; n -= kDecodeBlock, j += kDecodeBlock, slot += kDecodeBlock) {
      RawScores<kDecodeBlock>(q, keys + slot * slot_floats, head_size, raw + j * kPanelRows, largest);
    }
    for (; n > 0; --n, ++j, ++slot)
      RawScores<1>(q, keys + slot * slot_floats, head_size, raw + j * kPanelRows, largest);
  });
}

// Which lanes read slot number j of the range.
HWY_INLINE hn::Mask<DF> HasBegun(size_t j, VF starts) { return hn::Ge(hn::Set(DF(), static_cast<float>(j)), starts); }

// All raw scores and the largest that each lane reads. `starts` holds each lane's first j, `shared` the first that all lanes read.
HWY_INLINE void AllRawScores(const float* q, const float* keys, const SlotRange& slots, size_t shared, size_t head_size,
                             const VF* starts, float* raw, VF (&largest)[kVectorsPerPanel]) {
  const DF d;
  const VF lowest = hn::Set(d, -HUGE_VALF);
  VF unused[kVectorsPerPanel];
  for (size_t v = 0; v < kVectorsPerPanel; ++v) unused[v] = largest[v] = lowest;
  RangeScores(q, keys, slots, 0, shared, head_size, raw, unused);
  RangeScores(q, keys, slots, shared, slots.count, head_size, raw, largest);
  for (size_t j = 0; j < shared; ++j) {
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      const VF score = hn::Load(d, raw + j * kPanelRows + v * kLanes);
      largest[v] = hn::Max(largest[v], hn::IfThenElse(HasBegun(j, starts[v]), score, lowest));
    }
  }
}

// sum[b] += Σ weight · v[slot, b] over n slots, the first of them number j of the range; `weights` and `values` are at it. Where kSelect, only
// lanes that have begun take part. Where kWeigh, the weights are made of the raw scores first, summed, and left in their place. One slot
// at a time: four side by side, as in causal attention, ran at 169 ns a character of `tiny` where this takes 142 (Zen 5, AVX-512).
template <size_t kBlock, bool kSelect, bool kWeigh>
HWY_INLINE void MixRun(float* HWY_RESTRICT weights, const float* HWY_RESTRICT values, size_t head_size, size_t n,
                       size_t j, const VF* starts, Softmaxer& softmaxer, VF (&sum)[kBlock][kVectorsPerPanel]) {
  const DF d;
  for (const float* end = weights + n * kPanelRows; weights != end;
       weights += kPanelRows, values += head_size * kPanelRows, ++j) {
    VF weight[kVectorsPerPanel];
    if constexpr (kWeigh) {
      const auto keep = [&](size_t, size_t v, VF w)
                            HWY_ATTR { return kSelect ? hn::IfThenElseZero(HasBegun(j, starts[v]), w) : w; };
      softmaxer.Weigh<1>(weights, keep, weight);
    } else {
      OCTAVO_UNROLL
      for (size_t v = 0; v < kVectorsPerPanel; ++v) weight[v] = hn::Load(d, weights + v * kLanes);
    }
    OCTAVO_UNROLL
    for (size_t b = 0; b < kBlock; ++b) {
      OCTAVO_UNROLL
      for (size_t v = 0; v < kVectorsPerPanel; ++v) {
        VF value = hn::Load(d, values + b * kPanelRows + v * kLanes);
        if constexpr (kSelect) value = hn::IfThenElseZero(HasBegun(j, starts[v]), value);
        sum[b][v] = hn::MulAdd(weight[v], value, sum[b][v]);
      }
    }
  }
}

template <size_t kBlock, bool kWeigh>
HWY_INLINE void Mix(float* weights, const float* values, const SlotRange& slots, size_t shared, size_t head_size,
                    const VF* starts, Softmaxer& softmaxer, float* out) {
  const DF d;
  VF sum[kBlock][kVectorsPerPanel];
  OCTAVO_UNROLL
  for (size_t b = 0; b < kBlock; ++b) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) sum[b][v] = hn::Zero(d);
  }
  const size_t slot_floats = head_size * kPanelRows;
  slots.ForRuns(0, shared, [&](size_t j, size_t slot, size_t n) HWY_ATTR {
    MixRun<kBlock, true, kWeigh>(weights + j * kPanelRows, values + slot * slot_floats, head_size, n, j, starts,
                                 softmaxer, sum);
  });
  slots.ForRuns(shared, slots.count, [&](size_t j, size_t slot, size_t n) HWY_ATTR {
    MixRun<kBlock, false, kWeigh>(weights + j * kPanelRows, values + slot * slot_floats, head_size, n, j, starts,
                                  softmaxer, sum);
  });
  OCTAVO_UNROLL
  for (size_t v = 0; v < kVectorsPerPanel; ++v) {
    const VF normalizer = softmaxer.Normalizer(v);
    OCTAVO_UNROLL
    for (size_t b = 0; b < kBlock; ++b) hn::Store(hn::Mul(sum[b][v], normalizer), d, out + b * kPanelRows + v * kLanes);
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
  VF starts[kVectorsPerPanel];
  for (size_t v = 0; v < kVectorsPerPanel; ++v) starts[v] = hn::Load(d, first + v * kLanes);
  const VF scale = ScoreScale(head_size);

  for (size_t h = 0; h < num_heads; ++h) {
    const size_t feature = h * head_size * kPanelRows;
    const float* values = cache.values + h * cache.head_stride;
    float* to = out + feature;
    VF largest[kVectorsPerPanel];
    AllRawScores(q + feature, cache.keys + h * cache.head_stride, slots, shared, head_size, starts, scratch, largest);
    Softmaxer softmaxer(scale, largest);
    size_t i = HWY_MIN(head_size, kDecodeBlock);
    if (i == kDecodeBlock) {
      Mix<kDecodeBlock, true>(scratch, values, slots, shared, head_size, starts, softmaxer, to);
    } else {
      Mix<1, true>(scratch, values, slots, shared, head_size, starts, softmaxer, to);
      i = 1;
    }
    for (; i + kDecodeBlock <= head_size; i += kDecodeBlock) {
      Mix<kDecodeBlock, false>(scratch, values + i * kPanelRows, slots, shared, head_size, starts, softmaxer,
                               to + i * kPanelRows);
    }
    for (; i < head_size; ++i) {
      Mix<1, false>(scratch, values + i * kPanelRows, slots, shared, head_size, starts, softmaxer, to + i * kPanelRows);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_DECODE_ATTENTION_INL_H_
