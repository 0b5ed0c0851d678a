// Temperature, top-k, top-p and the draw, scalar; see sample.h.
#include "kernels/reference/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/strict_math.h"

namespace octavo::reference {
namespace {

// Sorts ids by falling value, then rising id, and drops all but the first `keep` (p = -1).
void KeepFirst(const float* values, size_t count, size_t keep, int32_t* order, float* p) {
  std::iota(order, order + count, 0);
  std::stable_sort(order, order + count, [values](int32_t a, int32_t b) {
    return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
  });
  for (size_t i = keep; i < count; ++i) p[static_cast<size_t>(order[i])] = -1;
}

}  // namespace

int32_t Sample(const float* logits, size_t count, float temperature, uint64_t top_k, float top_p, float uniform,
               float* scratch, int32_t* order) {
  const size_t best = static_cast<size_t>(std::max_element(logits, logits + count) - logits);
  if (temperature < std::numeric_limits<float>::min()) return static_cast<int32_t>(best);
  // An id that is not kept has p = -1; one that is may have p = 0 by underflow and still be the last kept.
  float* p = scratch;
  for (size_t i = 0; i < count; ++i) {
    p[i] = static_cast<float>(std::exp(static_cast<double>((logits[i] - logits[best]) / temperature)));
  }

  if (top_k > 0 && top_k < count) {
    KeepFirst(logits, count, static_cast<size_t>(top_k), order, p);
  }
  const auto kept_total = [p, count] {
    float total = 0;
    for (size_t i = 0; i < count; ++i) total += p[i] < 0 ? 0.0f : p[i];
    return total;
  };
  float total = kept_total();
  if (top_p < 1) {
    float* before = scratch + count;
    std::copy(p, p + count, before);
    KeepFirst(before, count, count, order, p);
    const float enough = top_p * total;
    float sum = 0;
    size_t keep = 0;
    while (keep < count && before[static_cast<size_t>(order[keep])] >= 0) {
      sum += before[static_cast<size_t>(order[keep++])];
      if (sum >= enough) break;
    }
    for (size_t i = keep; i < count; ++i) p[static_cast<size_t>(order[i])] = -1;
    total = kept_total();
  }
  const float threshold = uniform * total;
  float sum = 0;
  int32_t drawn = static_cast<int32_t>(best);
  for (size_t i = 0; i < count; ++i) {
    if (p[i] < 0) continue;
    drawn = static_cast<int32_t>(i);
    sum += p[i];
    if (sum > threshold) break;
  }
  return drawn;
}

}  // namespace octavo::reference
