// The specification of drawing one id from logits, in plain C++. All values are float: which id is drawn is decided by
// comparisons of running sums, so their precision is part of the specification.
#ifndef OCTAVO_KERNELS_REFERENCE_SAMPLE_H_
#define OCTAVO_KERNELS_REFERENCE_SAMPLE_H_

#include <cstddef>
#include <cstdint>

namespace octavo::reference {

// Returns the drawn id:
//   1. temperature below the smallest normal float: the largest logit, ties to the lowest id. Otherwise
//      p[i] = exp((logits[i] - largest) / temperature).
//   2. top_k in [1, count): exactly top_k ids are kept, those with the largest logits, ties to the lowest id.
//   3. top_p < 1: of the kept ids, sorted by falling p, then rising id, and summed in that order, the smallest number that
//      reaches top_p times the sum of all kept (summed in id order) stays; at least one.
//   4. the first kept id, in id order, whose running sum of p exceeds uniform · total; the last kept one if none does.
//
//   logits    [count], finite
//   scratch   [2 · count]
//   order     [count]
//
// Preconditions: count ≥ 1, temperature finite and ≥ 0, 0 < top_p ≤ 1, 0 ≤ uniform < 1.
// Sources: top-p, Holtzman et al., "The Curious Case of Neural Text Degeneration" (2019), section 3.1.
int32_t Sample(const float* logits, size_t count, float temperature, uint64_t top_k, float top_p, float uniform,
               float* scratch, int32_t* order);

}  // namespace octavo::reference

#endif  // OCTAVO_KERNELS_REFERENCE_SAMPLE_H_
