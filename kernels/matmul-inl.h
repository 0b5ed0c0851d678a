// Vector bodies of the matrix product; see matmul.h.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_MATMUL_INL_H_
#undef OCTAVO_KERNELS_MATMUL_INL_H_
#else
#define OCTAVO_KERNELS_MATMUL_INL_H_
#endif

#include "kernels/activation-inl.h"
#include "kernels/matmul.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

// Activates 16·count floats in place.
HWY_INLINE void ActivateOutputs(Epilogue epilogue, float* at, size_t count) {
  switch (epilogue) {
    case Epilogue::kGeluErf:
      return ActivateInPlace<ActivationKind::kGeluErf>(at, count * kPanelRows);
    case Epilogue::kGeluTanh:
      return ActivateInPlace<ActivationKind::kGeluTanh>(at, count * kPanelRows);
    case Epilogue::kRelu:
      return ActivateInPlace<ActivationKind::kRelu>(at, count * kPanelRows);
    default:
      return;
  }
}

// Rows in the lanes, tile by tile, so that each weight comes from memory once.
HWY_INLINE void MatMulPanels(const float* x, size_t num_panels, const PackedMatrix& matrix, Epilogue epilogue,
                             float* out) {
  const size_t num_outputs = matrix.num_outputs, panel_stride = kPanelRows * num_outputs;
  for (size_t tile = 0; tile < NumTiles(num_outputs); ++tile) {
    const size_t begin = TileBegin(num_outputs, tile), outputs = TileBegin(num_outputs, tile + 1) - begin;
    const float* weights = matrix.weights + begin * matrix.num_inputs;
    Destination to[kTileOutputs];
    for (size_t n = 0; n < outputs; ++n) to[n] = {out + (begin + n) * kPanelRows, panel_stride};
    if (epilogue == Epilogue::kAddResidual) {
      RunTileOverPanels<TileStore::kAdd>(outputs, x, num_panels, matrix.num_inputs, weights, matrix.bias + begin, to);
      continue;
    }
    RunTileOverPanels<TileStore::kSet>(outputs, x, num_panels, matrix.num_inputs, weights, matrix.bias + begin, to);
    for (size_t panel = 0; panel < num_panels; ++panel)
      ActivateOutputs(epilogue, to[0].at + panel * panel_stride, outputs);
  }
}

// Outputs in the lanes: kTiles tiles of 16 weights side by side, enough chains to hide the latency of a multiply-add, for kRows rows.
// y is [kRows][kTiles][16].
template <size_t kRows, size_t kTiles>
HWY_INLINE void RunFewRows(const float* HWY_RESTRICT x, size_t num_inputs, const float* const* HWY_RESTRICT weights,
                           const size_t* HWY_RESTRICT widths, const float (*bias)[kTileOutputs],
                           float* HWY_RESTRICT y) {
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

// As many tiles at once as give eight chains or fill half the registers.
template <size_t kRows>
HWY_INLINE void MatMulFewRows(const float* x, const PackedMatrix& matrix, Epilogue epilogue, float* out) {
  constexpr size_t kBudget = kManyRegisters ? 16 : 8;
  constexpr size_t kTiles = HWY_MAX(size_t{1}, kBudget / (kRows * kVectorsPerPanel));
  const size_t num_tiles = NumTiles(matrix.num_outputs);
  HWY_ALIGN float bias[kTiles][kTileOutputs] = {};
  HWY_ALIGN float y[kRows * kTiles * kTileOutputs];
  for (size_t first = 0; first < num_tiles; first += kTiles) {
    const size_t count = HWY_MIN(kTiles, num_tiles - first);
    const float* weights[kTiles];
    size_t widths[kTiles];
    for (size_t t = 0; t < kTiles; ++t) {
      const size_t tile = HWY_MIN(first + t, num_tiles - 1);  // repeats the last one where there are fewer
      const size_t begin = TileBegin(matrix.num_outputs, tile);
      widths[t] = TileBegin(matrix.num_outputs, tile + 1) - begin;
      weights[t] = matrix.weights + begin * matrix.num_inputs;
      for (size_t n = 0; n < widths[t]; ++n) bias[t][n] = matrix.bias[begin + n];
    }
    RunFewRows<kRows, kTiles>(x, matrix.num_inputs, weights, widths, bias, y);
    ActivateOutputs(epilogue, y, kRows * kTiles);
    float* to = out + TileBegin(matrix.num_outputs, first) * kPanelRows;
    for (size_t t = 0; t < count; ++t) {
      for (size_t n = 0; n < widths[t]; ++n, to += kPanelRows) {
        for (size_t r = 0; r < kRows; ++r) {
          const float value = y[(r * kTiles + t) * kTileOutputs + n];
          to[r] = epilogue == Epilogue::kAddResidual ? to[r] + value : value;
        }
      }
    }
  }
}

HWY_NOINLINE void MatMul(const float* x, size_t num_rows, const PackedMatrix& matrix, Epilogue epilogue, float* out) {
  switch (num_rows) {
    case 1:
      return MatMulFewRows<1>(x, matrix, epilogue, out);
    case 2:
      return MatMulFewRows<2>(x, matrix, epilogue, out);
    case 3:
      return MatMulFewRows<3>(x, matrix, epilogue, out);
    case 4:
      return MatMulFewRows<4>(x, matrix, epilogue, out);
    default:
      return MatMulPanels(x, NumPanels(num_rows), matrix, epilogue, out);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_MATMUL_INL_H_
