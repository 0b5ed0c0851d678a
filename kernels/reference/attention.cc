// Causal and decode attention, scalar; see attention.h.
#include "kernels/reference/attention.h"

#include <cmath>

#include "kernels/reference/softmax.h"

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

template <typename Value>
void CausalAttention(const Value* qkv, size_t num_rows, size_t length, size_t num_heads, size_t head_size, Value* out,
                     Value* weights, Value* scratch) {
  const size_t width = num_heads * head_size;
  for (size_t r = 0; r < num_rows; ++r) {
    const Value* table = qkv + r * length * 3 * width;
    for (size_t t = 0; t < length; ++t) {
      // Row t of every head's triangle: heads lie length² apart.
      Value* row = weights ? weights + (r * num_heads * length + t) * length : nullptr;
      DecodeAttention(table + t * 3 * width, table + width, table + 2 * width, 3 * width, t + 1, num_heads, head_size,
                      out + (r * length + t) * width, row, length * length, scratch);
      for (size_t h = 0; row && h < num_heads; ++h) {
        for (size_t s = t + 1; s < length; ++s) row[h * length * length + s] = 0;
      }
    }
  }
}

template void DecodeAttention(const double*, const double*, const double*, size_t, size_t, size_t, size_t, double*,
                              double*, size_t, double*);
template void DecodeAttention(const float*, const float*, const float*, size_t, size_t, size_t, size_t, float*, float*,
                              size_t, float*);
template void CausalAttention(const double*, size_t, size_t, size_t, size_t, double*, double*, double*);
template void CausalAttention(const float*, size_t, size_t, size_t, size_t, float*, float*, float*);

}  // namespace octavo::reference
