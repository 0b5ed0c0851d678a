// Scoring text in windows; see score.h.
#include "engine/score.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "engine/fail.h"
#include "engine/parallel.h"
#include "engine/reference_pass.h"
#include "kernels/reference/softmax.h"

namespace octavo {
namespace {

// Scores text[begin + 1 …] from the window that begins at `begin`, from character `first` on, into out[character - 1].
void ScoreWindow(const Model& model, std::span<const TokenId> text, size_t begin, size_t first, std::span<double> out) {
  const size_t length = std::min(model.config().context_length, text.size() - 1 - begin);
  const size_t vocabulary = model.config().vocabulary_size;
  ReferencePass<double> pass(model);
  const std::span<const double> logits = pass.ReadAll(text.subspan(begin, length));
  std::vector<double> log_softmax(vocabulary);
  for (size_t i = first - begin - 1; i < length; ++i) {
    const std::span<const double> row = logits.subspan(i * vocabulary, vocabulary);
    reference::LogSoftmax(row.data(), 1, vocabulary, log_softmax.data());
    // A logit that no float holds counts as not finite, as it does in generation.
    const bool finite =
        std::all_of(row.begin(), row.end(), [](double x) { return std::abs(x) <= std::numeric_limits<float>::max(); });
    out[begin + i] =
        finite ? log_softmax[static_cast<size_t>(text[begin + i + 1])] : std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace

void CheckStride(const Model& model, size_t stride) {
  if (stride > model.config().context_length) {
    Fail("stride is {}; expected 1 to {}, the context length", stride, model.config().context_length);
  }
}

Score ScoreText(const Model& model, const ScoreRequest& request) {
  CheckStride(model, request.stride);
  Score score;
  score.error = request.error;
  const std::span<const TokenId> text = request.text;
  if (!score.error.empty() || text.size() < 2) return score;
  const size_t context = model.config().context_length;
  const size_t stride = request.stride ? request.stride : context;
  const size_t targets = text.size() - 1;
  score.log_probabilities.resize(targets);
  // Window i scores up to character i·stride + context; it is the last one when that reaches the end.
  const size_t num_windows = targets <= context ? 1 : 1 + (targets - context + stride - 1) / stride;
  tbb::parallel_for(size_t{0}, num_windows, [&](size_t i) {
    const size_t begin = i * stride;
    const size_t first = i == 0 ? 1 : begin - stride + context + 1;
    ScoreWindow(model, text, begin, first, score.log_probabilities);
  });
  const auto bad = std::find_if_not(score.log_probabilities.begin(), score.log_probabilities.end(),
                                    [](double x) { return std::isfinite(x); });
  if (bad != score.log_probabilities.end()) {
    score.error =
        fmt::format("the model's logits are not finite before character {}", bad - score.log_probabilities.begin() + 2);
    score.log_probabilities.clear();
    return score;
  }
  score.nats = -std::accumulate(score.log_probabilities.begin(), score.log_probabilities.end(), 0.0);
  return score;
}

void ScoreAll(const Model& model, int num_threads, const std::function<std::optional<ScoreRequest>()>& next,
              const std::function<void(const ScoreRequest&, Score&&)>& emit) {
  const size_t in_flight = 16 * static_cast<size_t>(num_threads);
  WithThreads(num_threads, [&] {
    OrderedPipeline<ScoreRequest, Score>(
        in_flight, next, [&](const ScoreRequest& request) { return ScoreText(model, request); }, emit);
  });
}

}  // namespace octavo
