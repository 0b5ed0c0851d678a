// Checks of the sampling options and the draw; see sampling.h.
#include "engine/sampling.h"

#include <cmath>
#include <limits>

#include "engine/fail.h"
#include "engine/philox.h"
#include "kernels/reference/sample.h"

namespace octavo {

void CheckSampling(const SamplingOptions& options) {
  if (!(options.temperature >= 0 && options.temperature <= std::numeric_limits<float>::max())) {
    Fail("temperature is {}; expected 0 (greedy) or a positive number up to {:.3g}", options.temperature,
         std::numeric_limits<float>::max());
  }
  if (!(options.top_p > 0 && options.top_p <= 1))
    Fail("top_p is {}; expected more than 0 and at most 1", options.top_p);
}

TokenId Sampler::Draw(std::span<const float> logits, const SamplingOptions& options, uint64_t seed, uint64_t sequence,
                      uint64_t step) {
  scratch_.resize(2 * logits.size());
  order_.resize(logits.size());
  // A double in (0, 1] may round to a float of 0.
  const float top_p = std::max(static_cast<float>(options.top_p), std::numeric_limits<float>::min());
  return reference::Sample(logits.data(), logits.size(), static_cast<float>(options.temperature), options.top_k, top_p,
                           UniformDraw(seed, sequence, step), scratch_.data(), order_.data());
}

}  // namespace octavo
