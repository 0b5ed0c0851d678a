// Dispatch of layer norm; see layer_norm.h.
#include "kernels/layer_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layer_norm.cc"
#include "hwy/foreach_target.h"
// Behind foreach_target.
#include "kernels/layer_norm-inl.h"

#if HWY_ONCE
namespace octavo {

HWY_EXPORT(LayerNorm);

void LayerNorm(const float* x, size_t num_rows, size_t width, const float* gain, const float* bias, float epsilon,
               float* out) {
  HWY_DYNAMIC_DISPATCH(LayerNorm)(x, num_rows, width, gain, bias, epsilon, out);
}

}  // namespace octavo
#endif  // HWY_ONCE
