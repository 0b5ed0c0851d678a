// Writing text: one completion, or many in parallel and in order.
#ifndef OCTAVO_ENGINE_GENERATE_H_
#define OCTAVO_ENGINE_GENERATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model.h"
#include "engine/run_options.h"
#include "engine/sampling.h"

namespace octavo {

// What happens when the next character to be read would need a seat behind the last of the context's T.
enum class Overflow {
  kSlide,    // the last T characters sit in seats 0…T-1, as training saw them: every position is recomputed
  kRestart,  // the last max(1, ⌊T/2⌋) characters are read again once, then the cache goes on
  kStop,     // the text ends
};

struct GenerateOptions {
  uint64_t max_chars = 500;        // new characters at most
  std::vector<std::string> stops;  // the text ends where one of these is complete, and is cut before it; none empty
  SamplingOptions sampling;
  Overflow overflow = Overflow::kSlide;
};

struct GenerateRequest {
  std::vector<TokenId>
      prompt;  // empty: the model's start token; an id outside the vocabulary makes the completion an error
  GenerateOptions options;
  uint64_t seed = 0;
  uint64_t sequence = 0;                // with the seed, what the draws depend on
  std::string error;                    // not empty: no text is written, the completion carries this error in its place
  std::shared_ptr<const void> context;  // the caller's own, handed back untouched
};

enum class Finish { kLength, kStop, kContext, kError };

struct Completion {
  std::string text;  // UTF-8, without the prompt
  Finish finish = Finish::kLength;
  uint64_t num_chars = 0;
  double log_probability = 0;  // Σ ln p of the printed characters under the model itself (temperature 1, no cut)
  std::string error;           // with kError
};

// Throws Error when an option is out of its range.
void CheckOptions(const GenerateOptions& options);

// Writes one completion. `on_text` gets the text piece by piece as soon as no stop string can cut it off any more; what it throws is thrown
// on. With several threads, the work inside a step is shared where the model is large enough. `options`: threads, precision and `abandon` count.
// Depends on nothing but model, prompt, options, seed, sequence and precision. Throws Error for bad options and when memory does not suffice.
// When abandoned (see RunOptions), the completion has an error and no text, whatever was shown.
Completion Generate(const Model& model, const GenerateRequest& request,
                    const std::function<void(std::string_view)>& on_text = nullptr, const RunOptions& options = {});

// How well the lanes of a run were used.
struct LaneUse {
  uint64_t
      steps = 0,
      busy = 0;  // lanes stepped, and those of them that held a text; prompts read in one piece and windows not counted
};

// Pulls requests from `next` until it gives none, and hands their completions to `emit` in the same order. `next` and `emit` are each
// called by one thread at a time, but may overlap each other. At most 512 requests a thread are in flight, so memory does not
// depend on their number. What `next` or `emit` throws ends the run and is thrown on; Error when memory does not suffice.
LaneUse GenerateAll(const Model& model, const RunOptions& options,
                    const std::function<std::optional<GenerateRequest>()>& next,
                    const std::function<void(const GenerateRequest&, Completion&&)>& emit);

}  // namespace octavo

#endif  // OCTAVO_ENGINE_GENERATE_H_
