// What prefill and decoding share, so that both give the same bits: the raw score is the sum over i = 0, 1, … of q_i · k_i from zero;
// weight = exp(raw / sqrt(S) - largest); weights are summed and mixed with the values unnormalised, both in s order; one division.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_ATTENTION_INL_H_
#undef OCTAVO_KERNELS_ATTENTION_INL_H_
#else
#define OCTAVO_KERNELS_ATTENTION_INL_H_
#endif

#include "kernels/math-inl.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

// 1 / sqrt(head_size): scores are scaled inside the exponential's argument, where it costs nothing.
HWY_INLINE VF ScoreScale(size_t head_size) {
  const DF d;
  return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::Set(d, static_cast<float>(head_size))));
}

// Keys (or slots) whose weights are made together: four chains of the exponential side by side.
constexpr size_t kWeighKeys = HWY_MAX(size_t{1}, 4 / kVectorsPerPanel);

// The running softmax of 16 rows, one head: turns raw scores into unnormalised weights and sums them in order.
struct Softmaxer {
  VF scale, largest[kVectorsPerPanel], sum[kVectorsPerPanel];

  // `largest_raw` is not scaled yet; a rounding above the scaled score may remain, which the exponential takes.
  HWY_INLINE Softmaxer(VF score_scale, const VF* largest_raw) : scale(score_scale) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      largest[v] = hn::Mul(largest_raw[v], scale);
      sum[v] = hn::Zero(DF());
    }
  }

  // raw[s, row] to weights for kKeys keys, in `weight`, from where they are mixed at once, and where kStore in place too; keep(s, v, weight)
  // may put zeros where a row does not read key s.
  template <size_t kKeys, bool kStore, class Keep>
  HWY_INLINE void Weigh(float* raw, const Keep& keep, VF (&weight)[kKeys * kVectorsPerPanel]) {
    const DF d;
    OCTAVO_UNROLL
    for (size_t i = 0; i < kKeys * kVectorsPerPanel; ++i) {
      weight[i] = hn::MulSub(hn::Load(d, raw + i * kLanes), scale, largest[i % kVectorsPerPanel]);
    }
    ExpNonPositive(d, weight);
    OCTAVO_UNROLL
    for (size_t i = 0; i < kKeys * kVectorsPerPanel; ++i) {
      weight[i] = keep(i / kVectorsPerPanel, i % kVectorsPerPanel, weight[i]);
      sum[i % kVectorsPerPanel] = hn::Add(sum[i % kVectorsPerPanel], weight[i]);
      if constexpr (kStore) hn::Store(weight[i], d, raw + i * kLanes);
    }
  }

  HWY_INLINE VF Normalizer(size_t v) const { return hn::Div(hn::Set(DF(), 1.0f), sum[v]); }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_ATTENTION_INL_H_
