// Decode attention, scalar; see decode_attention.h.
#include "kernels/reference/decode_attention.h"

#include <cmath>

#include "kernels/reference/softmax.h"
#include "kernels/strict_math.h"

namespace octavo::reference {

template <typename Value>
void DecodeAttention(const Value* query, const Value* keys, const Value* values, size_t stride, size_t length,
                     size_t num_heads, size_t head_size, Value* out, Value* weights, size_t weights_stride,
                     Value* scratch) {
  const Value root = std::sqrt(static_cast<Value>(head_size));
  for (size_t h = 0; h < num_heads; ++h) {
    const size_t first = h * head_size;
    for (size_t s = 0; s < length; ++s) {
      Value dot = 0;
      for (size_t i = 0; i < head_size; ++i) {
        dot += query[first + i] * keys[s * stride + first + i];
      }
      scratch[s] = dot / root;
    }
    Softmax(scratch, 1, length, scratch);
    for (size_t i = 0; i < head_size; ++i) out[first + i] = 0;
    for (size_t s = 0; s < length; ++s) {
      for (size_t i = 0; i < head_size; ++i) {
        out[first + i] += scratch[s] * values[s * stride + first + i];
      }
      if (weights) weights[h * weights_stride + s] = scratch[s];
    }
  }
}

template void DecodeAttention(const double*, const double*, const double*, size_t, size_t, size_t, size_t, double*,
                              double*, size_t, double*);
template void DecodeAttention(const float*, const float*, const float*, size_t, size_t, size_t, size_t, float*, float*,
                              size_t, float*);

}  // namespace octavo::reference
