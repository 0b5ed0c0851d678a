// Weights packed for the matrix kernels: one packing for every target, for rows in the lanes and for outputs in the lanes.
//
// The outputs are cut into tiles of at most 16, as equal as possible (65 outputs: 5 tiles of 13). Tile by tile, all its weights follow
// each other, inputs outermost:
//
//      tile 0: w[k 0][n 0…n0), w[k 1][n 0…n0), …, w[k K-1][…]   tile 1: w[k 0][n0…n1), …   …   15 floats of padding
//
// A row of a full tile is one cache line. Rows in the lanes broadcast single weights from it; outputs in the lanes load it as a vector
// (over the end of a narrower tile into its neighbour, hence the padding; those lanes are dropped).
#ifndef OCTAVO_KERNELS_PACKED_MATRIX_H_
#define OCTAVO_KERNELS_PACKED_MATRIX_H_

#include <algorithm>
#include <cstddef>

namespace octavo {

constexpr size_t kTileOutputs = 16;

// y = x · weight + bias; the arrays belong to whoever made the matrix.
struct PackedMatrix {
  const float* weights = nullptr;  // PackedFloats(num_inputs, num_outputs), aligned to 64 bytes
  const float* bias = nullptr;     // [num_outputs]
  size_t num_inputs = 0;
  size_t num_outputs = 0;
};

// Tiles [begin, end) of a product's outputs, end at most NumTiles(num_outputs) or, for all of them, kAllTiles: threads can share a product.
constexpr size_t kAllTiles = static_cast<size_t>(-1);
struct TileRange {
  size_t begin = 0;
  size_t end = kAllTiles;
};

// Up to this many rows, outputs lie in the lanes instead of rows: the weights stream as vectors, at the speed of memory.
constexpr size_t kFewRows = 4;

constexpr size_t NumTiles(size_t num_outputs) { return (num_outputs + kTileOutputs - 1) / kTileOutputs; }

// First output of tile `tile`; of NumTiles(num_outputs), their end.
constexpr size_t TileBegin(size_t num_outputs, size_t tile) {
  const size_t tiles = NumTiles(num_outputs);
  return tiles == 0 ? 0 : tile * (num_outputs / tiles) + std::min(tile, num_outputs % tiles);
}

constexpr size_t PackedFloats(size_t num_inputs, size_t num_outputs) {
  return num_inputs * num_outputs + kTileOutputs - 1;
}

// Packs weight [num_inputs, num_outputs], row-major, into `packed` [PackedFloats]; the padding is set to zero.
inline void PackMatrix(const float* weight, size_t num_inputs, size_t num_outputs, float* packed) {
  for (size_t tile = 0; tile < NumTiles(num_outputs); ++tile) {
    const size_t begin = TileBegin(num_outputs, tile), end = TileBegin(num_outputs, tile + 1);
    for (size_t k = 0; k < num_inputs; ++k) {
      packed = std::copy(weight + k * num_outputs + begin, weight + k * num_outputs + end, packed);
    }
  }
  std::fill(packed, packed + kTileOutputs - 1, 0.0f);
}

}  // namespace octavo

#endif  // OCTAVO_KERNELS_PACKED_MATRIX_H_
