// Vector body of the fused query, key, value product; see qkv.h.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_QKV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_QKV_INL_H_
#undef OCTAVO_KERNELS_QKV_INL_H_
#else
#define OCTAVO_KERNELS_QKV_INL_H_
#endif

#include "kernels/few_rows-inl.h"
#include "kernels/qkv.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

// Where the outputs of the fused table go, one after the other: part, head and number within the head, counted up so that nothing is divided.
class QkvOutputs {
 public:
  // From output `begin` on.
  QkvOutputs(size_t num_heads, size_t head_size, const HeadLayout& q, const HeadLayout& k, const HeadLayout& v,
             size_t begin)
      : parts_{&q, &k, &v},
        num_heads_(num_heads),
        head_size_(head_size),
        part_(begin / (num_heads * head_size)),
        head_(begin / head_size % num_heads),
        i_(begin % head_size) {}

  // The next `count` of them, a run within a head at a time.
  HWY_INLINE void Next(size_t count, Destination* to) {
    while (count > 0) {
      const HeadLayout& layout = *parts_[part_];
      float* at = layout.at + head_ * layout.head_stride + i_ * kPanelRows;
      const size_t run = HWY_MIN(count, head_size_ - i_);
      for (size_t n = 0; n < run; ++n, at += kPanelRows) *to++ = {at, layout.panel_stride};
      count -= run;
      i_ += run;
      if (i_ < head_size_) return;
      i_ = 0;
      if (++head_ == num_heads_) head_ = 0, ++part_;
    }
  }

 private:
  const HeadLayout* parts_[3];
  size_t num_heads_, head_size_, part_, head_, i_;
};

HWY_NOINLINE void Qkv(const float* x, size_t num_rows, const PackedMatrix& matrix, size_t num_heads, size_t head_size,
                      const HeadLayout& q, const HeadLayout& k, const HeadLayout& v, TileRange tiles) {
  QkvOutputs outputs(num_heads, head_size, q, k, v, TileBegin(matrix.num_outputs, tiles.begin));
  if (num_rows == 0) return;
  if (num_rows <= kFewRows) {
    Destination to = {};
    return RunFewRows(
        x, num_rows, matrix, tiles, [](float*, size_t) HWY_ATTR {},
        [&](size_t, size_t r, float value) HWY_ATTR {
          if (r == 0) outputs.Next(1, &to);
          to.at[r] = value;
        });
  }
  for (size_t tile = tiles.begin; tile < HWY_MIN(tiles.end, NumTiles(matrix.num_outputs)); ++tile) {
    const size_t count = TileBegin(matrix.num_outputs, tile + 1) - TileBegin(matrix.num_outputs, tile);
    AnyOutputs to;
    outputs.Next(count, to.each);
    RunTileOverPanels<TileStore::kSet>(x, NumPanels(num_rows), matrix, tile, to);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_QKV_INL_H_
