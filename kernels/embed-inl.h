// Vector body of the embedding: four rows at a time, added and transposed in 128-bit blocks, which every target has.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_EMBED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_EMBED_INL_H_
#undef OCTAVO_KERNELS_EMBED_INL_H_
#else
#define OCTAVO_KERNELS_EMBED_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/embed.h"
#include "kernels/panel.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Features [begin, width) one by one: the remainder of the blocks below, and all of them on the one-lane target.
HWY_INLINE void EmbedScalar(const int32_t* tokens, const int32_t* positions, const float* token_table,
                            const float* position_table, size_t begin, size_t width, float* out) {
  for (size_t r = 0; r < kPanelRows; ++r) {
    const float* token = token_table + static_cast<size_t>(tokens[r]) * width;
    const float* position = position_table + static_cast<size_t>(positions[r]) * width;
    for (size_t f = begin; f < width; ++f) out[f * kPanelRows + r] = token[f] + position[f];
  }
}

// Features [0, width / 4 · 4); returns how many that were.
HWY_INLINE size_t EmbedBlocks(const int32_t* tokens, const int32_t* positions, const float* token_table,
                              const float* position_table, size_t width, float* out) {
#if HWY_TARGET == HWY_SCALAR
  (void)tokens, (void)positions, (void)token_table, (void)position_table, (void)width, (void)out;
  return 0;
#else
  const hn::Full128<float> d;
  const hn::Repartition<double, decltype(d)> dd;
  const size_t blocks_end = width / 4 * 4;
  for (size_t r = 0; r < kPanelRows; r += 4) {
    const float* token[4];
    const float* position[4];
    for (size_t i = 0; i < 4; ++i) {
      token[i] = token_table + static_cast<size_t>(tokens[r + i]) * width;
      position[i] = position_table + static_cast<size_t>(positions[r + i]) * width;
    }
    for (size_t f = 0; f < blocks_end; f += 4) {
      const auto row = [&](size_t i)
                           HWY_ATTR { return hn::Add(hn::LoadU(d, token[i] + f), hn::LoadU(d, position[i] + f)); };
      const auto a = row(0), b = row(1), c = row(2), e = row(3);
      // 4 × 4 transposition: pairs of rows, then pairs of pairs.
      const auto ab_low = hn::BitCast(dd, hn::InterleaveLower(d, a, b)),
                 ab_high = hn::BitCast(dd, hn::InterleaveUpper(d, a, b));
      const auto ce_low = hn::BitCast(dd, hn::InterleaveLower(d, c, e)),
                 ce_high = hn::BitCast(dd, hn::InterleaveUpper(d, c, e));
      float* to = out + f * kPanelRows + r;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, ab_low, ce_low)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, ab_low, ce_low)), d, to + kPanelRows);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, ab_high, ce_high)), d, to + 2 * kPanelRows);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, ab_high, ce_high)), d, to + 3 * kPanelRows);
    }
  }
  return blocks_end;
#endif
}

HWY_NOINLINE void Embed(const int32_t* tokens, const int32_t* positions, size_t num_rows, const float* token_table,
                        const float* position_table, size_t width, float* out) {
  for (size_t panel = 0; panel < NumPanels(num_rows); ++panel) {
    const size_t done = EmbedBlocks(tokens, positions, token_table, position_table, width, out);
    EmbedScalar(tokens, positions, token_table, position_table, done, width, out);
    tokens += kPanelRows;
    positions += kPanelRows;
    out += kPanelRows * width;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_EMBED_INL_H_
