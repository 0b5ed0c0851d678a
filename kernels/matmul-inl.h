// Vector bodies of the matrix product; see matmul.h.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_MATMUL_INL_H_
#undef OCTAVO_KERNELS_MATMUL_INL_H_
#else
#define OCTAVO_KERNELS_MATMUL_INL_H_
#endif

#include "kernels/activation-inl.h"
#include "kernels/few_rows-inl.h"
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
                             float* out, const TileRange& tiles) {
  const size_t num_outputs = matrix.num_outputs, panel_stride = kPanelRows * num_outputs;
  for (size_t tile = tiles.begin; tile < HWY_MIN(tiles.end, NumTiles(num_outputs)); ++tile) {
    const size_t begin = TileBegin(num_outputs, tile), outputs = TileBegin(num_outputs, tile + 1) - begin;
    const PanelOutputs to = {{out + begin * kPanelRows, panel_stride}};
    if (epilogue == Epilogue::kAddResidual) {
      RunTileOverPanels<TileStore::kAdd>(x, num_panels, matrix, tile, to);
      continue;
    }
    RunTileOverPanels<TileStore::kSet>(x, num_panels, matrix, tile, to);
    for (size_t panel = 0; panel < num_panels; ++panel)
      ActivateOutputs(epilogue, to.first.at + panel * panel_stride, outputs);
  }
}

HWY_NOINLINE void MatMulFewRows(const float* x, size_t num_rows, const PackedMatrix& matrix, Epilogue epilogue,
                                float* out, const TileRange& tiles) {
  RunFewRows(
      x, num_rows, matrix, tiles, [epilogue](float* y, size_t count) HWY_ATTR { ActivateOutputs(epilogue, y, count); },
      [epilogue, out](size_t n, size_t r, float value) HWY_ATTR {
        float& to = out[n * kPanelRows + r];
        to = epilogue == Epilogue::kAddResidual ? to + value : value;
      });
}

HWY_NOINLINE void MatMul(const float* x, size_t num_rows, const PackedMatrix& matrix, Epilogue epilogue, float* out,
                         TileRange tiles) {
  if (num_rows > kFewRows) return MatMulPanels(x, NumPanels(num_rows), matrix, epilogue, out, tiles);
  if (num_rows > 0) MatMulFewRows(x, num_rows, matrix, epilogue, out, tiles);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_MATMUL_INL_H_
