// Dispatch of the activations; see activation.h.
#include "kernels/activation.h"

#include "kernels/strict_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cc"
#include "hwy/foreach_target.h"
// Behind foreach_target.
#include "kernels/activation-inl.h"

#if HWY_ONCE
namespace octavo {

HWY_EXPORT(Activate);

void Activate(ActivationKind kind, const float* x, size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(Activate)(kind, x, count, out);
}

}  // namespace octavo
#endif  // HWY_ONCE
