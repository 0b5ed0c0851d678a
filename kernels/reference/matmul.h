// The specification of matrix products, in plain C++; see embed.h for what Value means.
#ifndef OCTAVO_KERNELS_REFERENCE_MATMUL_H_
#define OCTAVO_KERNELS_REFERENCE_MATMUL_H_

#include <cstddef>

namespace octavo::reference {

// out[r, n] = bias[n] + Σ_k x[r, k] · weight[k, n], summed in k order starting from the bias
//
//   x        [num_rows, num_inputs]
//   weight   [num_inputs, num_outputs]
//   bias     [num_outputs], or null for zeros
//   out      [num_rows, num_outputs], must not overlap x
//
// Cost: 2·num_rows·num_inputs·num_outputs FLOP.
template <typename Value>
void MatMul(const Value* x, size_t num_rows, size_t num_inputs, const float* weight, const float* bias,
            size_t num_outputs, Value* out);

// x[i] += y[i] for i < count: the residual connection that follows a projection. x and y must not overlap.
template <typename Value>
void AddResidual(const Value* y, size_t count, Value* x);

}  // namespace octavo::reference

#endif  // OCTAVO_KERNELS_REFERENCE_MATMUL_H_
