// Vector bodies of softmax over the features of panels; see softmax.h.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_SOFTMAX_INL_H_
#undef OCTAVO_KERNELS_SOFTMAX_INL_H_
#else
#define OCTAVO_KERNELS_SOFTMAX_INL_H_
#endif

#include "kernels/math-inl.h"
#include "kernels/softmax.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

// One vector of a panel's rows, at x + 16·i for feature i.
HWY_INLINE VF SumOfExp(const float* x, size_t count, VF largest) {
  const DF d;
  VF sum = hn::Zero(d);
  ForEachExp(
      d, count, [&](size_t i) HWY_ATTR { return hn::Sub(hn::Load(d, x + i * kPanelRows), largest); },
      [&](size_t, VF e) HWY_ATTR { sum = hn::Add(sum, e); });
  return sum;
}

// 0, or NaN where a number is not finite: infinity times zero is NaN.
HWY_INLINE VF ZeroIfFinite(const float* x, size_t count) {
  const DF d;
  return FoldInAnyOrder(
      count, hn::Zero(d), [&](size_t i) HWY_ATTR { return hn::Mul(hn::Load(d, x + i * kPanelRows), hn::Zero(d)); },
      [](VF a, VF b) HWY_ATTR { return hn::Add(a, b); });
}

HWY_NOINLINE void Softmax(const float* x, size_t num_rows, size_t count, float* out) {
  const DF d;
  for (size_t panel = 0; panel < NumPanels(num_rows); ++panel, x += kPanelRows * count, out += kPanelRows * count) {
    for (size_t v = 0; v < kPanelRows; v += kLanes) {
      const VF largest = LargestOf(d, x + v, count, kPanelRows);
      VF sum = hn::Zero(d);
      ForEachExp(
          d, count, [&](size_t i) HWY_ATTR { return hn::Sub(hn::Load(d, x + v + i * kPanelRows), largest); },
          [&](size_t i, VF p) HWY_ATTR {
            sum = hn::Add(sum, p);
            hn::Store(p, d, out + v + i * kPanelRows);
          });
      const VF scale = hn::Div(hn::Set(d, 1.0f), sum);
      for (size_t i = 0; i < count; ++i) {
        float* at = out + v + i * kPanelRows;
        hn::Store(hn::Mul(hn::Load(d, at), scale), d, at);
      }
    }
  }
}

HWY_NOINLINE void LogSoftmax(const float* x, size_t num_rows, size_t count, float* out) {
  const DF d;
  for (size_t panel = 0; panel < NumPanels(num_rows); ++panel, x += kPanelRows * count, out += kPanelRows * count) {
    for (size_t v = 0; v < kPanelRows; v += kLanes) {
      const VF largest = LargestOf(d, x + v, count, kPanelRows);
      const VF log_sum = Log(d, SumOfExp(x + v, count, largest));
      for (size_t i = 0; i < count; ++i) {
        hn::Store(hn::Sub(hn::Sub(hn::Load(d, x + v + i * kPanelRows), largest), log_sum), d, out + v + i * kPanelRows);
      }
    }
  }
}

HWY_NOINLINE void LogProbabilityOf(const float* x, size_t num_rows, size_t count, const int32_t* ids, float* out) {
  const DF d;
  for (size_t panel = 0; panel < NumPanels(num_rows);
       ++panel, x += kPanelRows * count, ids += kPanelRows, out += kPanelRows) {
    HWY_ALIGN float chosen[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r) chosen[r] = x[static_cast<size_t>(ids[r]) * kPanelRows + r];
    for (size_t v = 0; v < kPanelRows; v += kLanes) {
      const VF largest = LargestOf(d, x + v, count, kPanelRows);
      const VF log_sum = Log(d, SumOfExp(x + v, count, largest));
      const VF log_probability = hn::Sub(hn::Sub(hn::Load(d, chosen + v), largest), log_sum);
      hn::StoreU(hn::Add(log_probability, ZeroIfFinite(x + v, count)), d, out + v);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_SOFTMAX_INL_H_
