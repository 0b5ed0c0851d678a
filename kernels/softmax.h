// Softmax, log-softmax and the log-probability of given ids, over the features of panels.
#ifndef OCTAVO_KERNELS_SOFTMAX_H_
#define OCTAVO_KERNELS_SOFTMAX_H_

#include <cstddef>
#include <cstdint>

namespace octavo {

// out[r, i] = exp(x[r, i] - m_r) / Σ_j exp(x[r, j] - m_r), m_r = max_j x[r, j].
//
//   x, out   panels of num_rows rows, count features, aligned to 64 bytes; out may be x
//
// Preconditions: count ≥ 1. A row with a number that is not finite comes out as NaN or worse, the others are untouched by it; rows behind
// num_rows likewise.
// Order: the sum runs over i = 0, 1, …; one division a row.
// Error: (count + kSoftmaxBound + |x - m| + Σ_j out_j |x_j - m|) · 2^-24 · out, and kExpUnderflow (math_bounds.h); twice that without fused
// multiply-add. Cost: 2·count FLOP and count exponentials a row.
void Softmax(const float* x, size_t num_rows, size_t count, float* out);

// out[r, i] = (x[r, i] - m_r) - log(Σ_j exp(x[r, j] - m_r)); shapes as Softmax.
// Error: (count + kSoftmaxBound + |x - m| + Σ_j p_j |x_j - m| + 6 |out|) · 2^-24; twice that without fused multiply-add.
void LogSoftmax(const float* x, size_t num_rows, size_t count, float* out);

// out[r] = LogSoftmax(x)[r, ids[r]] for the rows of whole panels: ids and out have 16 · NumPanels(num_rows) entries, ids all valid.
// A row that holds any number that is not finite gives NaN.
void LogProbabilityOf(const float* x, size_t num_rows, size_t count, const int32_t* ids, float* out);

constexpr float kSoftmaxBound = 8;

}  // namespace octavo

#endif  // OCTAVO_KERNELS_SOFTMAX_H_
