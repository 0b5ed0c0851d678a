// Dispatch of causal attention; see causal_attention.h.
#include "kernels/causal_attention.h"

#include "kernels/strict_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/causal_attention.cc"
#include "hwy/foreach_target.h"
// Behind foreach_target.
#include "kernels/causal_attention-inl.h"

#if HWY_ONCE
namespace octavo {

HWY_EXPORT(CausalAttention);
HWY_EXPORT(CausalAttentionTable);

void CausalAttention(const float* qkv, size_t length, size_t first_panel, size_t num_heads, size_t head_size,
                     float* out, float* weights, float* scratch) {
  HWY_DYNAMIC_DISPATCH(CausalAttention)(qkv, length, first_panel, num_heads, head_size, out, weights, scratch);
}

void CausalAttentionTable(const float* table, size_t num_rows, size_t length, size_t num_heads, size_t head_size,
                          float* out, float* weights, float* scratch) {
  HWY_DYNAMIC_DISPATCH(CausalAttentionTable)(table, num_rows, length, num_heads, head_size, out, weights, scratch);
}

}  // namespace octavo
#endif  // HWY_ONCE
