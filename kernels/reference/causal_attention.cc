// Causal attention, scalar; see causal_attention.h.
#include "kernels/reference/causal_attention.h"

#include "kernels/reference/decode_attention.h"
#include "kernels/strict_math.h"

namespace octavo::reference {

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

template void CausalAttention(const double*, size_t, size_t, size_t, size_t, double*, double*, double*);
template void CausalAttention(const float*, size_t, size_t, size_t, size_t, float*, float*, float*);

}  // namespace octavo::reference
