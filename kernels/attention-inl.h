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

// `largest` is scaled. The argument may come out a rounding above zero, which the exponential takes.
HWY_INLINE VF AttentionWeight(VF raw, VF scale, VF largest) {
  return ExpNonPositive(DF(), hn::MulSub(raw, scale, largest));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_ATTENTION_INL_H_
