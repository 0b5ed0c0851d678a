// Drawing the next id from logits, 16 rows at once: temperature, top-k, top-p, and the draw.
#ifndef OCTAVO_KERNELS_SAMPLE_H_
#define OCTAVO_KERNELS_SAMPLE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/panel.h"

namespace octavo {

// What each of the panel's 16 rows asks for.
struct SampleRequest {
  const float* temperature;  // [16], ≥ 0, finite; below the smallest normal float: the largest logit
  const int32_t* top_k;      // [16], 0 or ≥ count: off
  const float* top_p;        // [16], in (0, 1]; 1: off
  const float* uniform;      // [16], in [0, 1)
};

// ids[r] = the id that row r draws: reference::Sample's specification, with p within kSampleBound · 2^-24 of it.
//
//   logits    one panel, count features, aligned to 64 bytes
//   scratch   [SampleScratchFloats(count)], aligned to 64 bytes
//   ids       [16]
//
// Preconditions: 1 ≤ count < 2^24. A row whose logits are not finite draws some valid id.
// Order: sums of p run over ids in rising order, for top-p over falling p, then rising id.
// Cost: count exponentials a row; top-k adds 32 passes over the logits; top-p some log2(count) + 10, and sorts the rows where rounding, or several p
// that are equal, decides what is kept.
void Sample(const float* logits, size_t count, const SampleRequest& request, float* scratch, int32_t* ids);

constexpr size_t SampleScratchFloats(size_t count) { return (kPanelRows + 5) * count; }

constexpr float kSampleBound = 8;

}  // namespace octavo

#endif  // OCTAVO_KERNELS_SAMPLE_H_
