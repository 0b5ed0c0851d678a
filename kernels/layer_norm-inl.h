// Vector body of layer norm; see layer_norm.h. Four running sums hide the latency of the additions.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_LAYER_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_LAYER_NORM_INL_H_
#undef OCTAVO_KERNELS_LAYER_NORM_INL_H_
#else
#define OCTAVO_KERNELS_LAYER_NORM_INL_H_
#endif

#include "kernels/layer_norm.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

// Σ_f term(f) over f < width for each of the panel's rows, in the order that layer_norm.h states.
template <class Term>
HWY_INLINE void SumOverFeatures(size_t width, const Term& term, VF (&total)[kVectorsPerPanel]) {
  const DF d;
  VF sum[4][kVectorsPerPanel];
  OCTAVO_UNROLL
  for (size_t i = 0; i < 4; ++i) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) sum[i][v] = hn::Zero(d);
  }
  size_t f = 0;
  for (; f + 4 <= width; f += 4) {
    OCTAVO_UNROLL
    for (size_t i = 0; i < 4; ++i) {
      OCTAVO_UNROLL
      for (size_t v = 0; v < kVectorsPerPanel; ++v) sum[i][v] = term(f + i, v, sum[i][v]);
    }
  }
  OCTAVO_UNROLL
  for (size_t i = 0; i < 3; ++i) {
    if (f + i < width) {
      OCTAVO_UNROLL
      for (size_t v = 0; v < kVectorsPerPanel; ++v) sum[i][v] = term(f + i, v, sum[i][v]);
    }
  }
  OCTAVO_UNROLL
  for (size_t v = 0; v < kVectorsPerPanel; ++v) {
    total[v] = hn::Add(hn::Add(sum[0][v], sum[1][v]), hn::Add(sum[2][v], sum[3][v]));
  }
}

HWY_NOINLINE void LayerNorm(const float* x, size_t num_rows, size_t width, const float* gain, const float* bias,
                            float epsilon, float* out) {
  const DF d;
  const VF count = hn::Set(d, static_cast<float>(width));
  for (size_t panel = 0; panel < NumPanels(num_rows); ++panel, x += kPanelRows * width, out += kPanelRows * width) {
    const auto load = [x, d](size_t f, size_t v) HWY_ATTR { return hn::Load(d, x + f * kPanelRows + v * kLanes); };
    VF mean[kVectorsPerPanel], scale[kVectorsPerPanel];
    SumOverFeatures(
        width, [&](size_t f, size_t v, VF sum) HWY_ATTR { return hn::Add(sum, load(f, v)); }, mean);
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) mean[v] = hn::Div(mean[v], count);
    const auto square = [&](size_t f, size_t v, VF sum) HWY_ATTR {
      const VF centred = hn::Sub(load(f, v), mean[v]);
      return hn::MulAdd(centred, centred, sum);
    };
    SumOverFeatures(width, square, scale);
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      const VF variance = hn::Div(scale[v], count);
      scale[v] = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::Add(variance, hn::Set(d, epsilon))));
    }
    for (size_t f = 0; f < width; ++f) {
      const VF g = hn::Set(d, gain[f]), b = hn::Set(d, bias[f]);
      OCTAVO_UNROLL
      for (size_t v = 0; v < kVectorsPerPanel; ++v) {
        const VF normed = hn::Mul(hn::Sub(load(f, v), mean[v]), scale[v]);
        hn::Store(hn::MulAdd(normed, g, b), d, out + f * kPanelRows + v * kLanes);
      }
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_LAYER_NORM_INL_H_
