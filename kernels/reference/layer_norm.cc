// Layer norm, scalar; see layer_norm.h.
#include "kernels/reference/layer_norm.h"

#include <cmath>

#include "kernels/strict_math.h"

namespace octavo::reference {

template <typename Value>
void LayerNorm(const Value* x, size_t num_rows, size_t width, const float* gain, const float* bias, float epsilon,
               Value* out) {
  const Value count = static_cast<Value>(width);
  for (size_t r = 0; r < num_rows; ++r) {
    const Value* row = x + r * width;
    Value sum = 0;
    for (size_t f = 0; f < width; ++f) sum += row[f];
    const Value mean = sum / count;
    Value squares = 0;
    for (size_t f = 0; f < width; ++f) squares += (row[f] - mean) * (row[f] - mean);
    const Value deviation = std::sqrt(squares / count + static_cast<Value>(epsilon));
    for (size_t f = 0; f < width; ++f) {
      out[r * width + f] = (row[f] - mean) / deviation * static_cast<Value>(gain[f]) + static_cast<Value>(bias[f]);
    }
  }
}

template void LayerNorm(const double*, size_t, size_t, const float*, const float*, float, double*);
template void LayerNorm(const float*, size_t, size_t, const float*, const float*, float, float*);

}  // namespace octavo::reference
