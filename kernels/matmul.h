// Matrix product of panels with packed weights, and what follows it at once: residual or activation.
#ifndef OCTAVO_KERNELS_MATMUL_H_
#define OCTAVO_KERNELS_MATMUL_H_

#include <cstddef>

#include "kernels/packed_matrix.h"

namespace octavo {

enum class Epilogue {
  kStore,        // out = y
  kAddResidual,  // out += y
  kGeluErf,      // out = activation(y), see ActivationKind
  kGeluTanh,
  kRelu,
};

// y[r, n] = bias[n] + Σ_k x[r, k] · weight[k, n], then the epilogue.
//
//   x        panels of num_rows rows, num_inputs features
//   matrix   packed weights and bias
//   out      panels of num_rows rows, num_outputs features; must not overlap x
//   tiles    which outputs are computed: those of these tiles; the others are not touched
//
// x, out and matrix.weights are aligned to 64 bytes. Rows from num_rows to the end of the last panel may hold anything and come out as
// anything (up to kFewRows rows they are not touched).
// Order: every sum starts from the bias and runs over k = 0, 1, …, one fused multiply-add a step, whatever num_rows: the same bits for a
// row alone and among others.
// Error, against the exact sum: (num_inputs + kMatMulBound) · 2^-24 · (|bias| + Σ_k |x · weight|), and for kAddResidual 2^-24 · (|out| + |y|) more;
// twice that on targets without fused multiply-add.
// Cost: 2 · num_rows · num_inputs · num_outputs FLOP; the weights come from memory once, in order, and stay in L1 for all panels of a tile.
void MatMul(const float* x, size_t num_rows, const PackedMatrix& matrix, Epilogue epilogue, float* out,
            TileRange tiles = {});

constexpr float kMatMulBound = 1;

}  // namespace octavo

#endif  // OCTAVO_KERNELS_MATMUL_H_
