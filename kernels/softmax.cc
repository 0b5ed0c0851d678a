// Dispatch of softmax, log-softmax and log-probabilities; see softmax.h.
#include "kernels/softmax.h"

#include "kernels/strict_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cc"
#include "hwy/foreach_target.h"
// Behind foreach_target.
#include "kernels/softmax-inl.h"

#if HWY_ONCE
namespace octavo {

HWY_EXPORT(Softmax);
HWY_EXPORT(LogSoftmax);
HWY_EXPORT(LogProbabilityOf);

void Softmax(const float* x, size_t num_rows, size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(Softmax)(x, num_rows, count, out);
}

void LogSoftmax(const float* x, size_t num_rows, size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(LogSoftmax)(x, num_rows, count, out);
}

void LogProbabilityOf(const float* x, size_t num_rows, size_t count, const int32_t* ids, float* out) {
  HWY_DYNAMIC_DISPATCH(LogProbabilityOf)(x, num_rows, count, ids, out);
}

}  // namespace octavo
#endif  // HWY_ONCE
