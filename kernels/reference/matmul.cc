// Matrix product with bias, and the residual addition, scalar; see matmul.h.
#include "kernels/reference/matmul.h"

#include "kernels/strict_math.h"

namespace octavo::reference {

template <typename Value>
void MatMul(const Value* x, size_t num_rows, size_t num_inputs, const float* weight, const float* bias,
            size_t num_outputs, Value* out) {
  for (size_t r = 0; r < num_rows; ++r) {
    Value* row = out + r * num_outputs;
    for (size_t n = 0; n < num_outputs; ++n) row[n] = bias ? static_cast<Value>(bias[n]) : Value{0};
    // k outermost walks the weights as they are stored; each sum still runs in k order.
    for (size_t k = 0; k < num_inputs; ++k) {
      const Value input = x[r * num_inputs + k];
      for (size_t n = 0; n < num_outputs; ++n) {
        row[n] += input * static_cast<Value>(weight[k * num_outputs + n]);
      }
    }
  }
}

template <typename Value>
void AddResidual(const Value* y, size_t count, Value* x) {
  for (size_t i = 0; i < count; ++i) x[i] += y[i];
}

template void MatMul(const double*, size_t, size_t, const float*, const float*, size_t, double*);
template void MatMul(const float*, size_t, size_t, const float*, const float*, size_t, float*);
template void AddResidual(const double*, size_t, double*);
template void AddResidual(const float*, size_t, float*);

}  // namespace octavo::reference
