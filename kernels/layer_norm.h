// Layer norm of panels.
#ifndef OCTAVO_KERNELS_LAYER_NORM_H_
#define OCTAVO_KERNELS_LAYER_NORM_H_

#include <cstddef>

namespace octavo {

// out[r, f] = (x[r, f] - mean_r) / sqrt(variance_r + epsilon) · gain[f] + bias[f]
// with mean_r = Σ_f x[r, f] / width, variance_r = Σ_f (x[r, f] - mean_r)² / width (two passes, centred).
//
//   x, out       panels of num_rows rows, width features, aligned to 64 bytes; out may be x
//   gain, bias   [width]
//
// Preconditions: width ≥ 1, epsilon ≥ 0. Rows behind num_rows may hold anything and come out as anything.
// Order: four sums over f = i, i + 4, i + 8, … (i = 0…3), then (0 + 1) + (2 + 3); one division for the mean and one for the scale.
// Error: 2^-24 · |gain| · ((width/4 + kLayerNormBound) · (deviation_r + |x|) / sqrt(variance_r + epsilon) + |out|), where deviation_r is
// max_f |x[r, f]|: what the mean's rounding leaves. See tests/testing/bounds.h.
// Cost: about 8 · width FLOP a row.
// Source: Ba, Kiros, Hinton, "Layer Normalization" (2016), equations 3 and 4.
void LayerNorm(const float* x, size_t num_rows, size_t width, const float* gain, const float* bias, float epsilon,
               float* out);

constexpr float kLayerNormBound = 8;

}  // namespace octavo

#endif  // OCTAVO_KERNELS_LAYER_NORM_H_
