// The specification of softmax and log-softmax, in plain C++; see embed.h for what Value means.
#ifndef OCTAVO_KERNELS_REFERENCE_SOFTMAX_H_
#define OCTAVO_KERNELS_REFERENCE_SOFTMAX_H_

#include <cstddef>

namespace octavo::reference {

// out[r, i] = exp(x[r, i] - m) / Σ_j exp(x[r, j] - m), m = max_j x[r, j].
//
//   x, out   [num_rows, count]; out may be x
//
// Preconditions: count ≥ 1, x finite. Cost: num_rows·count exponentials.
template <typename Value>
void Softmax(const Value* x, size_t num_rows, size_t count, Value* out);

// out[r, i] = x[r, i] - m - log(Σ_j exp(x[r, j] - m)), m = max_j x[r, j]; shapes and preconditions as Softmax.
template <typename Value>
void LogSoftmax(const Value* x, size_t num_rows, size_t count, Value* out);

}  // namespace octavo::reference

#endif  // OCTAVO_KERNELS_REFERENCE_SOFTMAX_H_
