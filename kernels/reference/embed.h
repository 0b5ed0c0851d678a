// The specification of the embedding: token plus position, in plain C++.
// Out of scope: speed. Every function of kernels/reference/ is a template over Value, instantiated for
//   double   the specification: all sums and intermediate values in double,
//   float    the same loops in float, whose error against the double ones scales the bounds of whole-model tests.
// Parameters of the model are always float, as the engine holds them. No alignment is needed anywhere in this folder.
#ifndef OCTAVO_KERNELS_REFERENCE_EMBED_H_
#define OCTAVO_KERNELS_REFERENCE_EMBED_H_

#include <cstddef>
#include <cstdint>

namespace octavo::reference {

// out[r, f] = token_table[tokens[r], f] + position_table[positions[r], f]
//
//   tokens, positions   [num_rows]; each row may stand at a position of its own
//   token_table         [vocabulary, width]
//   position_table      [context_length, width]
//   out                 [num_rows, width], must not overlap the inputs
//
// Preconditions: tokens[r] and positions[r] lie within their tables. Cost: num_rows·width additions.
template <typename Value>
void Embed(const int32_t* tokens, const int32_t* positions, size_t num_rows, const float* token_table,
           const float* position_table, size_t width, Value* out);

}  // namespace octavo::reference

#endif  // OCTAVO_KERNELS_REFERENCE_EMBED_H_
