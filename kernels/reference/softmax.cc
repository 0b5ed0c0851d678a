// Softmax and log-softmax, scalar; see softmax.h.
#include "kernels/reference/softmax.h"

#include <algorithm>
#include <cmath>

#include "kernels/strict_math.h"

namespace octavo::reference {

template <typename Value>
void Softmax(const Value* x, size_t num_rows, size_t count, Value* out) {
  for (size_t r = 0; r < num_rows; ++r, x += count, out += count) {
    const Value largest = *std::max_element(x, x + count);
    Value sum = 0;
    for (size_t i = 0; i < count; ++i) {
      out[i] = std::exp(x[i] - largest);
      sum += out[i];
    }
    for (size_t i = 0; i < count; ++i) out[i] /= sum;
  }
}

template <typename Value>
void LogSoftmax(const Value* x, size_t num_rows, size_t count, Value* out) {
  for (size_t r = 0; r < num_rows; ++r, x += count, out += count) {
    const Value largest = *std::max_element(x, x + count);
    Value sum = 0;
    for (size_t i = 0; i < count; ++i) sum += std::exp(x[i] - largest);
    const Value log_sum = std::log(sum);
    for (size_t i = 0; i < count; ++i) out[i] = x[i] - largest - log_sum;
  }
}

template void Softmax(const double*, size_t, size_t, double*);
template void Softmax(const float*, size_t, size_t, float*);
template void LogSoftmax(const double*, size_t, size_t, double*);
template void LogSoftmax(const float*, size_t, size_t, float*);

}  // namespace octavo::reference
