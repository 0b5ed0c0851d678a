// The matrix product for up to four rows, with outputs in the lanes: rows there would leave most lanes idle. Weights are read as vectors
// from the same packed tiles, x is broadcast; the sums run in the same order as in tile-inl.h, hence to the same bits. Used by matmul and qkv.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_FEW_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_FEW_ROWS_INL_H_
#undef OCTAVO_KERNELS_FEW_ROWS_INL_H_
#else
#define OCTAVO_KERNELS_FEW_ROWS_INL_H_
#endif

#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

// Packed tiles side by side: chains that hide the latency of a multiply-add, as registers allow, but at most 8 streams of weights:
// 16 of them read memory at 75% of the speed of 4 or 8 (Zen 5).
template <size_t kRows>
constexpr size_t kFewRowsTiles = HWY_MIN(8, HWY_MAX(1, (kManyRegisters ? 16 : 8) / (kRows * kVectorsPerPanel)));

// y[r][t][n] = bias[t][n] + Σ_k x[k][r] · weights[t][k·widths[t] + n] for r < kRows, t < kTiles, n < 16.
template <size_t kRows, size_t kTiles>
HWY_INLINE void RunFewRowsTiles(const float* HWY_RESTRICT x, size_t num_inputs,
                                const float* const* HWY_RESTRICT weights, const size_t* HWY_RESTRICT widths,
                                const float (*bias)[kTileOutputs], float* HWY_RESTRICT y) {
  const DF d;
  constexpr size_t kVectors = kTiles * kVectorsPerPanel;
  VF sum[kRows][kVectors];
  OCTAVO_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectors; ++v) {
      sum[r][v] = hn::Load(d, bias[v / kVectorsPerPanel] + v % kVectorsPerPanel * kLanes);
    }
  }
  for (size_t k = 0; k < num_inputs; ++k) {
    VF input[kRows];
    OCTAVO_UNROLL
    for (size_t r = 0; r < kRows; ++r) input[r] = hn::Set(d, x[k * kPanelRows + r]);
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t tile = v / kVectorsPerPanel;
      const VF weight = hn::LoadU(d, weights[tile] + k * widths[tile] + v % kVectorsPerPanel * kLanes);
      OCTAVO_UNROLL
      for (size_t r = 0; r < kRows; ++r) sum[r][v] = hn::MulAdd(weight, input[r], sum[r][v]);
    }
  }
  OCTAVO_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectors; ++v) hn::Store(sum[r][v], d, y + r * kTiles * kTileOutputs + v * kLanes);
  }
}

// Calls prepare(y, count) with 16·count sums, then take(n, r, value) for each output n of tiles [begin, end), in order, and row r < kRows.
template <size_t kRows, class Prepare, class Take>
HWY_INLINE void RunRows(const float* x, const PackedMatrix& matrix, size_t tile_begin, size_t tile_end,
                        const Prepare& prepare, const Take& take) {
  constexpr size_t kTiles = kFewRowsTiles<kRows>;
  HWY_ALIGN float bias[kTiles][kTileOutputs] = {};
  HWY_ALIGN float y[kRows * kTiles * kTileOutputs];
  size_t output = TileBegin(matrix.num_outputs, tile_begin);
  for (size_t first = tile_begin; first < tile_end; first += kTiles) {
    const float* weights[kTiles];
    size_t widths[kTiles];
    for (size_t t = 0; t < kTiles; ++t) {
      const size_t tile = HWY_MIN(first + t, tile_end - 1);  // repeats the last one where there are fewer
      const size_t begin = TileBegin(matrix.num_outputs, tile);
      widths[t] = TileBegin(matrix.num_outputs, tile + 1) - begin;
      weights[t] = matrix.weights + begin * matrix.num_inputs;
      for (size_t n = 0; n < widths[t]; ++n) bias[t][n] = matrix.bias[begin + n];
    }
    RunFewRowsTiles<kRows, kTiles>(x, matrix.num_inputs, weights, widths, bias, y);
    prepare(y, kRows * kTiles);
    for (size_t t = 0; t < HWY_MIN(kTiles, tile_end - first); ++t) {
      for (size_t n = 0; n < widths[t]; ++n, ++output) {
        for (size_t r = 0; r < kRows; ++r) take(output, r, y[(r * kTiles + t) * kTileOutputs + n]);
      }
    }
  }
}

// RunRows for 1 ≤ num_rows ≤ kFewRows.
template <class Prepare, class Take>
HWY_INLINE void RunFewRows(const float* x, size_t num_rows, const PackedMatrix& matrix, const TileRange& tiles,
                           const Prepare& prepare, const Take& take) {
  const size_t begin = tiles.begin, end = HWY_MIN(tiles.end, NumTiles(matrix.num_outputs));
  switch (num_rows) {
    case 1:
      return RunRows<1>(x, matrix, begin, end, prepare, take);
    case 2:
      return RunRows<2>(x, matrix, begin, end, prepare, take);
    case 3:
      return RunRows<3>(x, matrix, begin, end, prepare, take);
    default:
      return RunRows<4>(x, matrix, begin, end, prepare, take);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_FEW_ROWS_INL_H_
