// Scoring text: the log-probability that a model gives to each character of it.
#ifndef OCTAVO_ENGINE_SCORE_H_
#define OCTAVO_ENGINE_SCORE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model.h"
#include "engine/run_options.h"

namespace octavo {

struct ScoreRequest {
  std::vector<TokenId> text;
  // Window i reads characters [i·stride, i·stride + T) and predicts each one's successor; only those not yet scored count; the
  // last window may be short. 1 ≤ stride ≤ T; 0 stands for T.
  size_t stride = 0;
  std::string error;                    // not empty: nothing is scored, the result carries this error
  std::shared_ptr<const void> context;  // the caller's own, handed back untouched
};

struct Score {
  std::vector<double>
      log_probabilities;  // natural; of characters 1, 2, … of the text: the first has nothing to predict it
  double nats = 0;        // -Σ of them
  std::string
      error;  // the request's own, an id outside the vocabulary, or logits that are not finite: nothing is scored
};

// Throws Error when the stride is out of its range.
void CheckStride(const Model& model, size_t stride);

// Scores one text; its windows are shared by the threads. Result.error is set when logits are not finite, or when the options' `abandon` was.
Score ScoreText(const Model& model, const ScoreRequest& request, const RunOptions& options = {});

// As GenerateAll: in order, in parallel, in bounded memory. At most 64 texts a thread are in flight.
void ScoreAll(const Model& model, const RunOptions& options, const std::function<std::optional<ScoreRequest>()>& next,
              const std::function<void(const ScoreRequest&, Score&&)>& emit);

}  // namespace octavo

#endif  // OCTAVO_ENGINE_SCORE_H_
