// Vector body of the fused query, key, value product; see qkv.h.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_QKV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_QKV_INL_H_
#undef OCTAVO_KERNELS_QKV_INL_H_
#else
#define OCTAVO_KERNELS_QKV_INL_H_
#endif

#include "kernels/qkv.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

HWY_NOINLINE void Qkv(const float* x, size_t num_rows, const PackedMatrix& matrix, size_t num_heads, size_t head_size,
                      const HeadLayout& q, const HeadLayout& k, const HeadLayout& v) {
  const HeadLayout* const parts[3] = {&q, &k, &v};
  // The output that comes next: part, head and number within the head, counted up so that nothing is divided.
  size_t part = 0, head = 0, i = 0;
  for (size_t tile = 0; tile < NumTiles(matrix.num_outputs); ++tile) {
    const size_t begin = TileBegin(matrix.num_outputs, tile), outputs = TileBegin(matrix.num_outputs, tile + 1) - begin;
    Destination to[kTileOutputs];
    for (size_t n = 0; n < outputs; ++n) {
      const HeadLayout& layout = *parts[part];
      to[n] = {layout.at + head * layout.head_stride + i * kPanelRows, layout.panel_stride};
      if (++i < head_size) continue;
      i = 0;
      if (++head < num_heads) continue;
      head = 0;
      ++part;
    }
    RunTileOverPanels<TileStore::kSet>(outputs, x, NumPanels(num_rows), matrix.num_inputs,
                                       matrix.weights + begin * matrix.num_inputs, matrix.bias + begin, to);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_QKV_INL_H_
