// Dispatch of layer norm; see layer_norm.h.
#include "kernels/layer_norm.h"

#include "kernels/strict_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layer_norm.cc"
#include "hwy/foreach_target.h"
// Behind foreach_target.
#include "kernels/layer_norm-inl.h"

#if HWY_ONCE

#include <algorithm>
#include <cmath>

namespace octavo {

HWY_EXPORT(LayerNorm);

void LayerNorm(const float* x, size_t num_rows, size_t width, const float* gain, const float* bias, float epsilon,
               float* out) {
  HWY_DYNAMIC_DISPATCH(LayerNorm)(x, num_rows, width, gain, bias, epsilon, out);
}

LayerNormErrors::LayerNormErrors(const double* x, size_t width, double epsilon) {
  constexpr double kRoundoff = 0x1p-24;
  const double count = static_cast<double>(width), sum_error = (count / 4 + kLayerNormRoundings) * kRoundoff;
  double magnitude = 0, variance = 0, variance_error = 0;
  for (size_t f = 0; f < width; ++f) {
    mean_ += x[f] / count;
    magnitude += std::abs(x[f]) / count;
  }
  mean_error_ = sum_error * magnitude;
  for (size_t f = 0; f < width; ++f) {
    const double centred = std::abs(x[f] - mean_), error = mean_error_ + kRoundoff * centred;
    variance += centred * centred / count;
    variance_error += (2 * centred * error + error * error) / count;
  }
  variance_error += sum_error * variance;
  scale_ = 1 / std::sqrt(variance + epsilon);
  const double high = 1 / std::sqrt(std::max(variance - variance_error, 0.0) + epsilon);
  const double low = 1 / std::sqrt(variance + variance_error + epsilon);
  scale_error_ = std::max(high - scale_, scale_ - low) + 4 * kRoundoff * high;
}

double LayerNormErrors::Bound(double x, double gain, double out) const {
  constexpr double kRoundoff = 0x1p-24;
  const double centred = std::abs(x - mean_), error = mean_error_ + kRoundoff * centred;
  const double product = (centred + error) * (scale_ + scale_error_);
  return std::abs(gain) * (product - centred * scale_ + kRoundoff * product) +
         kRoundoff * (std::abs(out) + std::abs(gain) * product);
}

}  // namespace octavo
#endif  // HWY_ONCE
