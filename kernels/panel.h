// The panel: 16 rows interleaved, the layout of all activations. A row is one character being processed: in generation the 16 rows are
// 16 sequences, in prefill and scoring 16 consecutive positions of one.
//
//   element (feature f, row r) of a panel with F features stands at 16·f + r:
//
//      offset   0         1        …   15        16        17       …   16·F - 1
//      element  (0, r 0)  (0, r 1) …   (0, r 15) (1, r 0)  (1, r 1) …   (F-1, r 15)
//
// Several panels follow each other, 16·F floats each; row R of a batch is row R % 16 of panel R / 16. Every kernel works on whole panels:
// rows behind the last live one may hold anything, also NaN, and come out as anything.
#ifndef OCTAVO_KERNELS_PANEL_H_
#define OCTAVO_KERNELS_PANEL_H_

#include <cstddef>

namespace octavo {

constexpr size_t kPanelRows = 16;

// Vector loads and stores of panels are aligned to one row group: pointers to panels must be multiples of this many bytes.
constexpr size_t kPanelAlignment = 64;

constexpr size_t NumPanels(size_t num_rows) { return (num_rows + kPanelRows - 1) / kPanelRows; }

// Floats in `num_rows` rows of `num_features`, whole panels.
constexpr size_t PanelFloats(size_t num_rows, size_t num_features) {
  return NumPanels(num_rows) * kPanelRows * num_features;
}

}  // namespace octavo

#endif  // OCTAVO_KERNELS_PANEL_H_
