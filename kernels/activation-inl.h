// Vector bodies of the activations; see activation.h. The functions themselves are in math-inl.h.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_ACTIVATION_INL_H_
#undef OCTAVO_KERNELS_ACTIVATION_INL_H_
#else
#define OCTAVO_KERNELS_ACTIVATION_INL_H_
#endif

#include "kernels/activation_kind.h"
#include "kernels/math-inl.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

template <ActivationKind kKind>
HWY_INLINE VF ActivateVector(DF d, VF x) {
  if constexpr (kKind == ActivationKind::kGeluErf) return GeluErf(d, x);
  if constexpr (kKind == ActivationKind::kGeluTanh) return GeluTanh(d, x);
  return Relu(d, x);
}

// `count` is a multiple of 16, `at` aligned to 64 bytes.
template <ActivationKind kKind>
HWY_NOINLINE void ActivateInPlace(float* HWY_RESTRICT at, size_t count) {
  const DF d;
  for (size_t i = 0; i < count; i += kLanes) hn::Store(ActivateVector<kKind>(d, hn::Load(d, at + i)), d, at + i);
}

template <ActivationKind kKind>
HWY_INLINE void ActivateRun(const float* x, size_t count, float* out) {
  const DF d;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(ActivateVector<kKind>(d, hn::LoadU(d, x + i)), d, out + i);
  if (i == count) return;
  HWY_ALIGN float rest[kPanelRows] = {};
  for (size_t j = i; j < count; ++j) rest[j - i] = x[j];
  hn::Store(ActivateVector<kKind>(d, hn::Load(d, rest)), d, rest);
  for (size_t j = i; j < count; ++j) out[j] = rest[j - i];
}

inline HWY_NOINLINE void Activate(ActivationKind kind, const float* x, size_t count, float* out) {
  switch (kind) {
    case ActivationKind::kGeluErf:
      return ActivateRun<ActivationKind::kGeluErf>(x, count, out);
    case ActivationKind::kGeluTanh:
      return ActivateRun<ActivationKind::kGeluTanh>(x, count, out);
    case ActivationKind::kRelu:
      return ActivateRun<ActivationKind::kRelu>(x, count, out);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_ACTIVATION_INL_H_
