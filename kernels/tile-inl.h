// The register tile that all matrix products share: a few outputs × a few vectors of rows, summed over k in one order, one fused
// multiply-add a step, nothing summed across lanes. Used by matmul, qkv and causal_attention.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_TILE_INL_H_
#undef OCTAVO_KERNELS_TILE_INL_H_
#else
#define OCTAVO_KERNELS_TILE_INL_H_
#endif

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/packed_matrix.h"
#include "kernels/panel.h"
#include "kernels/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, kPanelRows>;
using VF = hn::Vec<DF>;

constexpr size_t kLanes = HWY_MIN(HWY_LANES(float), kPanelRows);
constexpr size_t kVectorsPerPanel = kPanelRows / kLanes;

// 32 vector registers on AVX-512 and AArch64, 16 on the other x86 targets.
constexpr bool kManyRegisters = HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64;

// Most outputs of a tile with `vectors` vectors of rows: accumulators, one row vector each and a broadcast fit the registers.
constexpr size_t MaxTileOutputs(size_t vectors) {
  if (kManyRegisters) return vectors <= 2 ? 8 : 6;
  return vectors == 1 ? 8 : vectors == 2 ? 6 : 2;
}

// Panels that one pass over the weights serves. On AVX-512 two, in tiles of 8 outputs × 2 vectors: 6 × 4 costs 2% more at width 32, where the
// 16 outputs of a packed tile do not divide by 6 (Zen 5; shares of peak 0.93 against 0.91, equal at width 384).
constexpr size_t kPanelsPerPass = kVectorsPerPanel == 1 ? 2 : 1;

// Where an output's rows go: panel p's at `at` + p · panel_stride, 16 floats.
struct Destination {
  float* at;
  size_t panel_stride;
};

// Where a tile's outputs go, number n of them at to[n]: in a panel, one after the other, or anywhere.
struct PanelOutputs {
  Destination first;
  HWY_INLINE Destination operator[](size_t n) const { return {first.at + n * kPanelRows, first.panel_stride}; }
};
struct AnyOutputs {
  Destination each[kTileOutputs];
  HWY_INLINE Destination operator[](size_t n) const { return each[n]; }
};

enum class TileStore { kSet, kAdd };

// A packed tile on its way over panels of x: what its register tiles need.
template <class Outputs>
struct PackedTile {
  const float* x;  // panel 0
  size_t num_inputs;
  const float* weights;  // [num_inputs][num_outputs]
  size_t num_outputs;    // at most 16
  const float* bias;
  size_t ahead;  // floats from these weights to those of the next tile; 0: there is none
  const Outputs& to;
};

// One step of the sums: sum[n] += x[row] · w[n] for the rows of kPanels panels.
template <size_t kOutputs, size_t kPanels>
HWY_INLINE void AddTileProducts(const float* HWY_RESTRICT x, size_t x_stride, const float* HWY_RESTRICT w,
                                VF (&sum)[kOutputs][kPanels * kVectorsPerPanel]) {
  const DF d;
  constexpr size_t kVectors = kPanels * kVectorsPerPanel;
  VF row[kVectors];
  OCTAVO_UNROLL
  for (size_t v = 0; v < kVectors; ++v) {
    row[v] = hn::Load(d, x + v / kVectorsPerPanel * x_stride + v % kVectorsPerPanel * kLanes);
  }
  OCTAVO_UNROLL
  for (size_t n = 0; n < kOutputs; ++n) {
    const VF weight = hn::Set(d, w[n]);
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectors; ++v) sum[n][v] = hn::MulAdd(weight, row[v], sum[n][v]);
  }
}

// For outputs n = begin … begin + kOutputs - 1 and each row of kPanels panels from `panel` on: sum = bias[n]; sum += x[k][row] · w[k][n],
// k = 0, 1, …; stored to, or added to, to[n].
// kWidth is tile.num_outputs, or 0: known at run time only. On the way the next tile's weights are fetched, for tiles of known width.
// These take two k at a time: 2 to 3% at width 32 (Zen 5).
template <size_t kOutputs, size_t kWidth, size_t kPanels, TileStore kStore, class Outputs>
HWY_INLINE void RunTile(const PackedTile<Outputs>& tile, size_t begin, size_t panel) {
  const DF d;
  constexpr size_t kVectors = kPanels * kVectorsPerPanel;
  VF sum[kOutputs][kVectors];
  OCTAVO_UNROLL
  for (size_t n = 0; n < kOutputs; ++n) {
    const VF start = hn::Set(d, tile.bias[begin + n]);
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectors; ++v) sum[n][v] = start;
  }
  const size_t x_stride = tile.num_inputs * kPanelRows, w_stride = kWidth > 0 ? kWidth : tile.num_outputs;
  const float* HWY_RESTRICT x = tile.x + panel * x_stride;
  const float* HWY_RESTRICT w = tile.weights + begin;
  size_t k = tile.num_inputs;
  if constexpr (kWidth > 0) {
    for (; k >= 2; k -= 2, x += 2 * kPanelRows, w += 2 * w_stride) {
      hwy::Prefetch(w + tile.ahead);
      AddTileProducts<kOutputs, kPanels>(x, x_stride, w, sum);
      hwy::Prefetch(w + tile.ahead + w_stride);
      AddTileProducts<kOutputs, kPanels>(x + kPanelRows, x_stride, w + w_stride, sum);
    }
  }
  for (; k > 0; --k, x += kPanelRows, w += w_stride) AddTileProducts<kOutputs, kPanels>(x, x_stride, w, sum);
  OCTAVO_UNROLL
  for (size_t n = 0; n < kOutputs; ++n) {
    const Destination to = tile.to[begin + n];
    float* first = to.at + panel * to.panel_stride;
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectors; ++v) {
      float* at = first + v / kVectorsPerPanel * to.panel_stride + v % kVectorsPerPanel * kLanes;
      hn::Store(kStore == TileStore::kAdd ? hn::Add(hn::Load(d, at), sum[n][v]) : sum[n][v], d, at);
    }
  }
}

// RunTile for a number of outputs that is only known at run time, 1 … kMost.
template <size_t kMost, size_t kPanels, TileStore kStore, class Outputs>
HWY_INLINE void RunTileOf(size_t outputs, const PackedTile<Outputs>& tile, size_t begin, size_t panel) {
  if constexpr (kMost > 0) {
    if (outputs == kMost) return RunTile<kMost, 0, kPanels, kStore>(tile, begin, panel);
    RunTileOf<kMost - 1, kPanels, kStore>(outputs, tile, begin, panel);
  }
}

// The larger part of `whole` split in `parts` as equal as possible; the few values of `parts` spare a division.
HWY_INLINE size_t EqualShare(size_t whole, size_t parts) {
  if (parts == 1) return whole;
  if (parts == 2) return (whole + 1) / 2;
  if (parts == 3) return (whole + 2) / 3;
  return (whole + parts - 1) / parts;
}

// The register tiles of a packed tile of 16 from output kBegin on. All but the last few tiles of most matrices are such, and at width 32 what is
// decided at run time costs 2 to 6% of peak (Zen 5).
template <size_t kBegin, size_t kPanels, TileStore kStore, class Outputs>
HWY_INLINE void RunWholeTile(const PackedTile<Outputs>& tile, size_t panel) {
  constexpr size_t kMost = MaxTileOutputs(kPanels * kVectorsPerPanel), kRest = kTileOutputs - kBegin;
  if constexpr (kRest > 0) {
    constexpr size_t kPieces = (kRest + kMost - 1) / kMost, kOutputs = (kRest + kPieces - 1) / kPieces;
    RunTile<kOutputs, kTileOutputs, kPanels, kStore>(tile, kBegin, panel);
    RunWholeTile<kBegin + kOutputs, kPanels, kStore>(tile, panel);
  }
}

// All outputs of a packed tile, cut into register tiles as equal as possible (16: 8, 8 or 6, 5, 5).
template <size_t kPanels, TileStore kStore, class Outputs>
HWY_NOINLINE void RunPackedTile(const PackedTile<Outputs>& tile, size_t panel) {
  constexpr size_t kMost = MaxTileOutputs(kPanels * kVectorsPerPanel);
  if (tile.num_outputs == kTileOutputs) return RunWholeTile<0, kPanels, kStore>(tile, panel);
  size_t begin = 0;
  for (size_t pieces = (tile.num_outputs + kMost - 1) / kMost; pieces > 0; --pieces) {
    const size_t count = EqualShare(tile.num_outputs - begin, pieces);
    RunTileOf<kMost, kPanels, kStore>(count, tile, begin, panel);
    begin += count;
  }
}

// Runs tile `number` of `matrix` over `num_panels` panels of x, as many at once as registers allow; `to` says where its outputs go. The next tile's
// weights are fetched meanwhile: `baby` (43 MB, from memory) runs at 90% of peak then, at 67% without; `tiny` (124 KB, from L2) gains 3% end to
// end. Where weights are in L1 already, the instruction costs up to 4% at width 32 (Zen 5).
template <TileStore kStore, class Outputs>
HWY_INLINE void RunTileOverPanels(const float* x, size_t num_panels, const PackedMatrix& matrix, size_t number,
                                  const Outputs& to) {
  const size_t begin = TileBegin(matrix.num_outputs, number), end = TileBegin(matrix.num_outputs, number + 1);
  const PackedTile<Outputs> tile = {.x = x,
                                    .num_inputs = matrix.num_inputs,
                                    .weights = matrix.weights + begin * matrix.num_inputs,
                                    .num_outputs = end - begin,
                                    .bias = matrix.bias + begin,
                                    .ahead = end < matrix.num_outputs ? (end - begin) * matrix.num_inputs : 0,
                                    .to = to};
  size_t panel = 0;
  if constexpr (kPanelsPerPass == 2) {
    for (; panel + 2 <= num_panels; panel += 2) RunPackedTile<2, kStore>(tile, panel);
  }
  for (; panel < num_panels; ++panel) RunPackedTile<1, kStore>(tile, panel);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_TILE_INL_H_
