// Scaled causal softmax and value mixing over whole texts, 16 query positions in the lanes.
#ifndef OCTAVO_KERNELS_CAUSAL_ATTENTION_H_
#define OCTAVO_KERNELS_CAUSAL_ATTENTION_H_

#include <cstddef>
#include "kernels/panel.h"

namespace octavo {

// One text. Per head h, position t, with S = head_size:
//   weight[t, s] = exp(q[t] · k[s] / sqrt(S) - largest) / Σ for s ≤ t;  out[t, h·S + i] = Σ_{s ≤ t} weight[t, s] · v[s, i]
//
//   qkv           panels of `length` positions, 3·W features (q | k | v), W = num_heads · head_size; aligned to 64 bytes
//   first_panel   only positions from 16 · first_panel on are computed; what lies before in `out` and `weights` is not touched
//   out           panels of `length` positions, W features; aligned to 64 bytes; must not overlap qkv
//   weights       null, or [num_heads, length, length], row-major, any alignment; above the diagonal zeros are written
//   scratch       [PanelFloats(length, 16)], aligned to 64 bytes
//
// The mask is a loop bound, and inside the 16 × 16 blocks on the diagonal a select: what lies behind t never reaches row t, whatever it is.
// Order and bits: as DecodeAttention, see attention-inl.h. Error: attention_bound.h.
// Cost: 2 · W · length · (length + 1) FLOP.
// Source: Vaswani et al., "Attention Is All You Need" (2017), section 3.2.1.
void CausalAttention(const float* qkv, size_t length, size_t first_panel, size_t num_heads, size_t head_size,
                     float* out, float* weights, float* scratch);

// The same on row-major tables, several texts of one length.
//
//   table     [num_rows · length, 3·W], any alignment, as are out and weights
//   out       [num_rows · length, W]
//   weights   null, or [num_rows, num_heads, length, length]
//   scratch   [CausalAttentionTableScratch(…)], aligned to 64 bytes
void CausalAttentionTable(const float* table, size_t num_rows, size_t length, size_t num_heads, size_t head_size,
                          float* out, float* weights, float* scratch);

constexpr size_t CausalAttentionTableScratch(size_t length, size_t num_heads, size_t head_size) {
  return PanelFloats(length, 4 * num_heads * head_size + kPanelRows);
}

}  // namespace octavo

#endif  // OCTAVO_KERNELS_CAUSAL_ATTENTION_H_
