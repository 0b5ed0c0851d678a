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
// Error: LayerNormErrors below; twice that without fused multiply-add.
// Cost: about 8 · width FLOP a row.
// Source: Ba, Kiros, Hinton, "Layer Normalization" (2016), equations 3 and 4.
void LayerNorm(const float* x, size_t num_rows, size_t width, const float* gain, const float* bias, float epsilon,
               float* out);

// The error bound of a row, from its exact values. Roundings of the sums first: n = width/4 + kLayerNormRoundings each.
//   mean      off by at most m = n · 2^-24 · mean |x|
//   centred   off by e = m + 2^-24 · |x - mean|
//   variance  off by v = (2 Σ |x - mean| e + Σ e²) / width + n · 2^-24 · variance
//   scale     1/sqrt(variance + epsilon) lies between those of variance ± v
// An output is then off by |gain| times the difference of the products, and a few roundings of its own.
class LayerNormErrors {
 public:
  LayerNormErrors(const double* x, size_t width, double epsilon);

  // For input x and exact output `out` of one feature.
  double Bound(double x, double gain, double out) const;

 private:
  double mean_ = 0, mean_error_ = 0, scale_ = 0, scale_error_ = 0;
};

constexpr double kLayerNormRoundings = 6;

}  // namespace octavo

#endif  // OCTAVO_KERNELS_LAYER_NORM_H_
