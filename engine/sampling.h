// How the next character is chosen from the logits: options, their check, and the draw.
#ifndef OCTAVO_ENGINE_SAMPLING_H_
#define OCTAVO_ENGINE_SAMPLING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "engine/config.h"

namespace octavo {

struct SamplingOptions {
  double temperature = 1;  // 0, or below the smallest normal float: the largest logit, ties to the lowest id
  uint64_t top_k = 0;      // 0: off
  double top_p = 1;        // in (0, 1]; 1: off
};

// Throws Error that names the option, its value and what was expected.
void CheckSampling(const SamplingOptions& options);

// Draws ids; holds only working memory. Not for several threads at once.
class Sampler {
 public:
  // The id drawn for new character `step` of completion `sequence` under `seed`. `logits` must be finite and `options` checked.
  TokenId Draw(std::span<const float> logits, const SamplingOptions& options, uint64_t seed, uint64_t sequence,
               uint64_t step);

 private:
  std::vector<float> scratch_;
  std::vector<int32_t> order_;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_SAMPLING_H_
