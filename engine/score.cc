// Scoring text in windows; see score.h.
#include "engine/score.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "engine/fail.h"
#include "engine/forward.h"
#include "engine/ordered_queue.h"
#include "engine/parallel.h"
#include "kernels/softmax.h"

namespace octavo {
namespace {

// Scores text[begin + 1 …] from the window that begins at `begin`, from character `first` on, into out[character - 1].
void ScoreWindow(TextPass& pass, const Model& model, std::span<const TokenId> text, size_t begin, size_t first,
                 std::span<double> out) {
  const size_t length = std::min(model.config().context_length, text.size() - 1 - begin);
  const size_t first_needed = first - begin - 1;
  pass.Read(text.subspan(begin, length), first_needed);
  for (size_t panel = first_needed / kPanelRows; panel < NumPanels(length); ++panel) {
    const size_t row_begin = panel * kPanelRows, rows = std::min(kPanelRows, length - row_begin);
    int32_t successors[kPanelRows] = {};
    for (size_t r = 0; r < rows; ++r) successors[r] = text[begin + row_begin + r + 1];
    float log_probabilities[kPanelRows];
    LogProbabilityOf(pass.Logits(panel), kPanelRows, model.config().vocabulary_size, successors, log_probabilities);
    for (size_t r = 0; r < rows; ++r) {
      if (row_begin + r >= first_needed) out[begin + row_begin + r] = static_cast<double>(log_probabilities[r]);
    }
  }
}

// One pass a thread, made when the thread first needs it.
using Passes = tbb::enumerable_thread_specific<TextPass>;

Passes MakePasses(const Model& model, KvPrecision kv) {
  return Passes([&model, kv] { return TextPass(model, nullptr, kv); });
}

// Windows of the context's length take about as long as their products.
double WindowSeconds(const ModelConfig& config) {
  return 24e-11 * static_cast<double>(config.num_layers * config.context_length) *
         static_cast<double>(config.width * config.width);
}

// nullopt: abandoned before all windows were read.
std::optional<Score> ScoreWith(Passes& passes, const Team& team, const Model& model, const ScoreRequest& request,
                               const RunOptions& options) {
  CheckStride(model, request.stride);
  Score score;
  score.error = request.error;
  const std::span<const TokenId> text = request.text;
  if (score.error.empty()) score.error = model.vocabulary().ComplaintAbout(text);
  if (!score.error.empty() || text.size() < 2) return score;
  const size_t context = model.config().context_length;
  const size_t stride = request.stride ? request.stride : context;
  const size_t targets = text.size() - 1;
  score.log_probabilities.resize(targets);
  // Window i scores up to character i·stride + context; it is the last one when that reaches the end.
  const size_t num_windows = targets <= context ? 1 : 1 + (targets - context + stride - 1) / stride;
  const double seconds = static_cast<double>(num_windows) * WindowSeconds(model.config());
  std::atomic<bool> abandoned = false;
  team.Share(num_windows, seconds, [&](size_t, size_t window, size_t end) {
    for (TextPass& pass = passes.local(); window < end; ++window) {
      if (options.Abandoned()) {
        abandoned = true;
        return;
      }
      const size_t begin = window * stride, first = window == 0 ? 1 : begin - stride + context + 1;
      ScoreWindow(pass, model, text, begin, first, score.log_probabilities);
    }
  });
  if (abandoned) return std::nullopt;
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

}  // namespace

void CheckStride(const Model& model, size_t stride) {
  if (stride > model.config().context_length) {
    Fail("stride is {}; expected 1 to {}, the context length", stride, model.config().context_length);
  }
}

Score ScoreText(const Model& model, const ScoreRequest& request, const RunOptions& options) {
  Passes passes = MakePasses(model, options.kv);
  const Team team(options);
  std::optional<Score> score;
  team.Execute([&] { score = ScoreWith(passes, team, model, request, options); });
  return score ? *std::move(score) : Score{{}, 0, "the run was abandoned before the text was scored"};
}

void ScoreAll(const Model& model, const RunOptions& options, const std::function<std::optional<ScoreRequest>()>& next,
              const std::function<void(const ScoreRequest&, Score&&)>& emit) {
  constexpr double kLongSeconds = 5e-3;  // starting oneTBB takes about as long
  const size_t num_workers = static_cast<size_t>(options.num_threads), context = model.config().context_length;
  Passes passes = MakePasses(model, options.kv);
  OrderedQueue<ScoreRequest, Score> queue(next, emit, options, num_workers, 64 * num_workers);
  const bool alone = !queue.has_reader();
  const Team team(options, alone);
  team.Grow(alone ? 1 : num_workers, [&](size_t, const std::function<size_t()>& grow) {
    try {
      while (auto item = queue.Take(0)) {
        // A long text is worth the threads, which others will need that come meanwhile.
        const double windows = 1 + static_cast<double>(item->request.text.size()) / static_cast<double>(context);
        if (queue.has_ready() || windows * WindowSeconds(model.config()) > kLongSeconds) queue.SetWorkers(grow());
        std::optional<Score> score = ScoreWith(passes, team, model, item->request, options);
        if (!score) return queue.Abort(nullptr);  // no more requests; others may wait for some
        queue.Put(item->number, std::move(item->request), *std::move(score));
      }
    } catch (...) {
      queue.Abort(std::current_exception());
    }
  });
  queue.Finish();
}

}  // namespace octavo
