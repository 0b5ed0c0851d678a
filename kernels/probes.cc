// Dispatch of the roofline probes; see probes.h.
#include "kernels/probes.h"

#include "kernels/strict_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/probes.cc"
#include "hwy/foreach_target.h"
// Behind foreach_target.
#include "kernels/probes-inl.h"

#if HWY_ONCE
namespace octavo {

HWY_EXPORT(ProbeMultiplyAdd);
HWY_EXPORT(ProbeFlopPerRound);
HWY_EXPORT(ProbeRead);

float ProbeMultiplyAdd(size_t rounds) { return HWY_DYNAMIC_DISPATCH(ProbeMultiplyAdd)(rounds); }

size_t ProbeFlopPerRound() { return HWY_DYNAMIC_DISPATCH(ProbeFlopPerRound)(); }

float ProbeRead(size_t way, const float* data, size_t count, size_t passes) {
  return HWY_DYNAMIC_DISPATCH(ProbeRead)(way, data, count, passes);
}

}  // namespace octavo
#endif  // HWY_ONCE
