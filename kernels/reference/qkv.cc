// Fused query, key, value product, scalar; see qkv.h.
#include "kernels/reference/qkv.h"

#include "kernels/strict_math.h"

namespace octavo::reference {

template <typename Value>
void Qkv(const Value* x, size_t num_rows, size_t width, const float* weight, const float* bias, size_t stride, Value* q,
         Value* k, Value* v) {
  Value* const parts[3] = {q, k, v};
  for (size_t r = 0; r < num_rows; ++r) {
    for (size_t part = 0; part < 3; ++part) {
      for (size_t f = 0; f < width; ++f) {
        const size_t column = part * width + f;
        Value sum = bias ? static_cast<Value>(bias[column]) : Value{0};
        for (size_t i = 0; i < width; ++i) {
          sum += x[r * width + i] * static_cast<Value>(weight[i * 3 * width + column]);
        }
        parts[part][r * stride + f] = sum;
      }
    }
  }
}

template void Qkv(const double*, size_t, size_t, const float*, const float*, size_t, double*, double*, double*);
template void Qkv(const float*, size_t, size_t, const float*, const float*, size_t, float*, float*, float*);

}  // namespace octavo::reference
