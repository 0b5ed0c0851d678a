// Token plus position embedding into panels.
#ifndef OCTAVO_KERNELS_EMBED_H_
#define OCTAVO_KERNELS_EMBED_H_

#include <cstddef>
#include <cstdint>

namespace octavo {

// out[r, f] = token_table[tokens[r], f] + position_table[positions[r], f]
//
//   tokens, positions   [16 · NumPanels(num_rows)]: each row may stand at a position of its own; rows behind num_rows need valid ids too
//   token_table         [vocabulary, width], any alignment
//   position_table      [context_length, width], any alignment
//   out                 panels of num_rows rows, width features, aligned to 64 bytes
//
// Preconditions: the ids lie within their tables. Exact but for the one rounding of the addition: 2^-24 · |out|.
// Cost: width additions a row, 12·width bytes moved.
void Embed(const int32_t* tokens, const int32_t* positions, size_t num_rows, const float* token_table,
           const float* position_table, size_t width, float* out);

}  // namespace octavo

#endif  // OCTAVO_KERNELS_EMBED_H_
