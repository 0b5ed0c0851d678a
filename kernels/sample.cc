// Dispatch of sampling; see sample.h.
#include "kernels/sample.h"

#include "kernels/strict_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sample.cc"
#include "hwy/foreach_target.h"
// Behind foreach_target.
#include "kernels/sample-inl.h"

#if HWY_ONCE
namespace octavo {

HWY_EXPORT(Sample);

void Sample(const float* logits, size_t count, const SampleRequest& request, float* scratch, int32_t* ids) {
  HWY_DYNAMIC_DISPATCH(Sample)(logits, count, request, scratch, ids);
}

}  // namespace octavo
#endif  // HWY_ONCE
