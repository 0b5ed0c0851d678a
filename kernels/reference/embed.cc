// Token plus position embedding, scalar; see embed.h.
#include "kernels/reference/embed.h"

#include "kernels/strict_math.h"

namespace octavo::reference {

template <typename Value>
void Embed(const int32_t* tokens, const int32_t* positions, size_t num_rows, const float* token_table,
           const float* position_table, size_t width, Value* out) {
  for (size_t r = 0; r < num_rows; ++r) {
    const float* token = token_table + static_cast<size_t>(tokens[r]) * width;
    const float* position = position_table + static_cast<size_t>(positions[r]) * width;
    for (size_t f = 0; f < width; ++f) {
      out[r * width + f] = static_cast<Value>(token[f]) + static_cast<Value>(position[f]);
    }
  }
}

template void Embed(const int32_t*, const int32_t*, size_t, const float*, const float*, size_t, double*);
template void Embed(const int32_t*, const int32_t*, size_t, const float*, const float*, size_t, float*);

}  // namespace octavo::reference
