// Dispatch of the embedding; see embed.h.
#include "kernels/embed.h"

#include "kernels/strict_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embed.cc"
#include "hwy/foreach_target.h"
// Behind foreach_target.
#include "kernels/embed-inl.h"

#if HWY_ONCE
namespace octavo {

HWY_EXPORT(Embed);

void Embed(const int32_t* tokens, const int32_t* positions, size_t num_rows, const float* token_table,
           const float* position_table, size_t width, float* out) {
  HWY_DYNAMIC_DISPATCH(Embed)(tokens, positions, num_rows, token_table, position_table, width, out);
}

}  // namespace octavo
#endif  // HWY_ONCE
