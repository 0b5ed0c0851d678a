// The register tile that all matrix products share: a few outputs × a few vectors of rows, summed over k in one order, one fused
// multiply-add a step, nothing summed across lanes. Used by matmul, qkv and causal_attention.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_TILE_INL_H_
#undef OCTAVO_KERNELS_TILE_INL_H_
#else
#define OCTAVO_KERNELS_TILE_INL_H_
#endif

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
  if (kManyRegisters) return vectors <= 2 ? 8 : vectors <= 4 ? 6 : 1;
  return vectors == 1 ? 8 : vectors == 2 ? 6 : vectors <= 4 ? 2 : 1;
}

// Most panels that one pass over the weights serves: four vectors of rows where registers allow, as each broadcast weight then feeds
// four multiply-adds.
constexpr size_t kPanelsPerPass = kManyRegisters ? HWY_MAX(1, 4 / kVectorsPerPanel) : 1;

// Where an output's row group goes: panel p's at `at` + p · panel_stride, 16 floats.
struct Destination {
  float* at;
  size_t panel_stride;
};

enum class TileStore { kSet, kAdd };

// For n < kOutputs and each row: sum = bias[n]; sum += x[k][row] · w[k·w_stride + n], k = 0, 1, …; stored to, or added to, to[n].
// x is kPanels panels, `x_stride` floats apart.
template <size_t kOutputs, size_t kPanels, TileStore kStore>
HWY_INLINE void RunTile(const float* HWY_RESTRICT x, size_t x_stride, size_t num_inputs, const float* HWY_RESTRICT w,
                        size_t w_stride, const float* HWY_RESTRICT bias, const Destination* to) {
  const DF d;
  constexpr size_t kVectors = kPanels * kVectorsPerPanel;
  VF sum[kOutputs][kVectors];
  OCTAVO_UNROLL
  for (size_t n = 0; n < kOutputs; ++n) {
    const VF start = hn::Set(d, bias[n]);
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectors; ++v) sum[n][v] = start;
  }
  for (size_t k = 0; k < num_inputs; ++k) {
    VF row[kVectors];
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectors; ++v) {
      row[v] = hn::Load(d, x + v / kVectorsPerPanel * x_stride + k * kPanelRows + v % kVectorsPerPanel * kLanes);
    }
    OCTAVO_UNROLL
    for (size_t n = 0; n < kOutputs; ++n) {
      const VF weight = hn::Set(d, w[k * w_stride + n]);
      OCTAVO_UNROLL
      for (size_t v = 0; v < kVectors; ++v) sum[n][v] = hn::MulAdd(weight, row[v], sum[n][v]);
    }
  }
  OCTAVO_UNROLL
  for (size_t n = 0; n < kOutputs; ++n) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectors; ++v) {
      float* at = to[n].at + v / kVectorsPerPanel * to[n].panel_stride + v % kVectorsPerPanel * kLanes;
      hn::Store(kStore == TileStore::kAdd ? hn::Add(hn::Load(d, at), sum[n][v]) : sum[n][v], d, at);
    }
  }
}

// RunTile for a number of outputs that is only known at run time, 1 … kMost.
template <size_t kMost, size_t kPanels, TileStore kStore>
HWY_INLINE void RunTileOf(size_t outputs, const float* x, size_t x_stride, size_t num_inputs, const float* w,
                          size_t w_stride, const float* bias, const Destination* to) {
  if constexpr (kMost > 0) {
    if (outputs == kMost) return RunTile<kMost, kPanels, kStore>(x, x_stride, num_inputs, w, w_stride, bias, to);
    RunTileOf<kMost - 1, kPanels, kStore>(outputs, x, x_stride, num_inputs, w, w_stride, bias, to);
  }
}

// A packed tile of `outputs` ≤ 16, cut into register tiles as equal as possible (16: 6, 5, 5).
template <size_t kPanels, TileStore kStore>
HWY_NOINLINE void RunPackedTile(size_t outputs, const float* x, size_t x_stride, size_t num_inputs, const float* w,
                                size_t w_stride, const float* bias, const Destination* to) {
  constexpr size_t kMost = MaxTileOutputs(kPanels * kVectorsPerPanel);
  const size_t pieces = (outputs + kMost - 1) / kMost;
  for (size_t piece = 0, n = 0; piece < pieces; ++piece) {
    const size_t count = outputs / pieces + (piece < outputs % pieces);
    RunTileOf<kMost, kPanels, kStore>(count, x, x_stride, num_inputs, w + n, w_stride, bias + n, to + n);
    n += count;
  }
}

// Runs one packed tile over `num_panels` panels of x, as many at once as registers allow; `to` is for the first panel.
template <TileStore kStore>
HWY_INLINE void RunTileOverPanels(size_t outputs, const float* x, size_t num_panels, size_t num_inputs, const float* w,
                                  const float* bias, const Destination* to) {
  const size_t x_stride = kPanelRows * num_inputs;
  Destination here[kTileOutputs];
  for (size_t n = 0; n < outputs; ++n) here[n] = to[n];
  const auto advance = [&](size_t panels) HWY_ATTR {
    x += panels * x_stride;
    num_panels -= panels;
    for (size_t n = 0; n < outputs; ++n) here[n].at += panels * here[n].panel_stride;
  };
  const auto run_while = [&]<size_t kPanels>() HWY_ATTR {
    while (num_panels >= kPanels) {
      RunPackedTile<kPanels, kStore>(outputs, x, x_stride, num_inputs, w, outputs, bias, here);
      advance(kPanels);
    }
  };
  if constexpr (kPanelsPerPass >= 4) run_while.template operator()<4>();
  if constexpr (kPanelsPerPass >= 2) run_while.template operator()<2>();
  run_while.template operator()<1>();
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_TILE_INL_H_
