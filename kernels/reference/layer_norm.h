// The specification of layer norm, in plain C++; see embed.h for what Value means.
#ifndef OCTAVO_KERNELS_REFERENCE_LAYER_NORM_H_
#define OCTAVO_KERNELS_REFERENCE_LAYER_NORM_H_

#include <cstddef>

namespace octavo::reference {

// out[r, f] = (x[r, f] - mean_r) / sqrt(variance_r + epsilon) · gain[f] + bias[f]
// with mean_r = Σ_f x[r, f] / width and variance_r = Σ_f (x[r, f] - mean_r)² / width (two passes, centred).
//
//   x, out   [num_rows, width]; out may be x
//   gain     [width]
//   bias     [width]
//
// Preconditions: width ≥ 1, epsilon ≥ 0. Cost: about 8·num_rows·width FLOP.
// Source: Ba, Kiros, Hinton, "Layer Normalization" (2016), equations 3 and 4.
template <typename Value>
void LayerNorm(const Value* x, size_t num_rows, size_t width, const float* gain, const float* bias, float epsilon,
               Value* out);

}  // namespace octavo::reference

#endif  // OCTAVO_KERNELS_REFERENCE_LAYER_NORM_H_
