// Whole models from text to text: what a user of generate and score gets, in characters a second.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "engine/generate.h"
#include "engine/model.h"
#include "engine/score.h"
#include "engine/threads.h"
#include "kernels/targets.h"

namespace octavo::bench {
namespace {

// Sonnet 18, so that scoring meets text of the kind that the model knows.
constexpr std::string_view kSonnet =
    "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate:\n"
    "Rough winds do shake the darling buds of May,\nAnd summer's lease hath all too short a date:\n"
    "Sometime too hot the eye of heaven shines,\nAnd often is his gold complexion dimm'd;\n"
    "And every fair from fair sometime declines,\nBy chance or nature's changing course untrimm'd;\n"
    "But thy eternal summer shall not fade\nNor lose possession of that fair thou owest;\n"
    "Nor shall Death brag thou wander'st in his shade,\nWhen in eternal lines to time thou growest:\n"
    "So long as men can breathe or eyes can see,\nSo long lives this and this gives life to thee.\n";

constexpr double kUniformNats = 4.17;  // ln 65: what a model that knows nothing would need for a character

// How much is written: `texts` times `chars` characters from the start character on.
struct Amount {
  uint64_t texts, chars;
};

std::vector<Completion> Write(const Model& model, int num_threads, const Amount& amount) {
  std::vector<Completion> completions;
  uint64_t begun = 0;
  GenerateAll(
      model, {.num_threads = num_threads},
      [&]() -> std::optional<GenerateRequest> {
        if (begun == amount.texts) return std::nullopt;
        GenerateRequest request;
        request.options.max_chars = amount.chars;
        request.seed = 1;
        request.sequence = begun++;
        return request;
      },
      [&](const GenerateRequest&, Completion&& completion) { completions.push_back(std::move(completion)); });
  return completions;
}

// Useful work of `count` characters from position 0 on: 2·(12·L·W² + W·V) + 4·L·W·(t + 1) for the character at position t.
double UsefulFlop(const ModelConfig& config, uint64_t count) {
  const double width = static_cast<double>(config.width), layers = static_cast<double>(config.num_layers),
               n = static_cast<double>(count);
  const double matrices = 2 * (12 * layers * width * width + width * static_cast<double>(config.vocabulary_size));
  return n * matrices + 4 * layers * width * n * (n + 1) / 2;
}

// What is wrong with them, or nothing: scoring a text must give back the probability that generation reported of what it wrote.
std::string CheckCompletions(const Model& model, const std::vector<Completion>& completions, const Amount& amount) {
  if (completions.size() != amount.texts) return fmt::format("{} completions", completions.size());
  for (const Completion& completion : completions) {
    if (completion.num_chars != amount.chars) return fmt::format("{} characters", completion.num_chars);
    ScoreRequest request;
    request.text = model.vocabulary().Encode(completion.text);
    request.text.insert(request.text.begin(), model.start_token());
    // Behind the context the two read different windows, so there it only has to be possible.
    const double nats = ScoreText(model, request).nats, written = -completion.log_probability;
    const bool whole = amount.chars <= model.config().context_length;
    const double least = whole ? nats * 0.999 : 0,
                 most = whole ? nats * 1.001 : kUniformNats * static_cast<double>(amount.chars);
    if (!(written >= least && written <= most))
      return fmt::format("generation reported {} nats, scoring {}", written, nats);
  }
  return "";
}

void Generate(benchmark::State& state, const Model& model, int num_threads, const Amount& amount) {
  if (const std::string wrong = CheckCompletions(model, Write(model, num_threads, amount), amount); !wrong.empty()) {
    return state.SkipWithError(wrong.c_str());
  }
  double peak = PeakFlops();
  const auto began = std::chrono::steady_clock::now();
  for (auto _ : state) benchmark::DoNotOptimize(Write(model, num_threads, amount).data());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  peak = std::max(peak, PeakFlops());
  if (amount.chars <= model.config().context_length) {
    const double flop =
        UsefulFlop(model.config(), amount.chars) * static_cast<double>(amount.texts * state.iterations());
    state.counters["of_peak"] = flop / seconds / (peak * num_threads);
  }
  const double chars = static_cast<double>(amount.texts * amount.chars);
  state.counters["chars/s"] = {chars, benchmark::Counter::kIsIterationInvariantRate};
}

void ScoreSonnet(benchmark::State& state, const Model& model, int num_threads) {
  const std::vector<TokenId> text = model.vocabulary().Encode(kSonnet);
  // A call goes through all threads, as the command does: several sonnets, so that each has work.
  const int num_texts = 4 * num_threads;
  double nats = 0, chars = 0;
  const auto score = [&] {
    int begun = 0;
    nats = chars = 0;
    ScoreAll(
        model, {.num_threads = num_threads},
        [&]() -> std::optional<ScoreRequest> {
          if (begun++ == num_texts) return std::nullopt;
          ScoreRequest request;
          request.text = text;
          return request;
        },
        [&](const ScoreRequest&, Score&& result) {
          nats += result.nats;
          chars += static_cast<double>(result.log_probabilities.size());
        });
  };
  score();
  if (chars != static_cast<double>(num_texts) * static_cast<double>(text.size() - 1) ||
      !(nats / chars > 1 && nats / chars < 2.5)) {
    return state.SkipWithError(fmt::format("{} characters at {} nats", chars, nats / chars).c_str());
  }
  for (auto _ : state) {
    score();
    benchmark::DoNotOptimize(nats);
  }
  state.counters["chars/s"] = {chars, benchmark::Counter::kIsIterationInvariantRate};
}

}  // namespace

void RegisterGeneration() {
  const auto model = std::make_shared<const Model>(Model::Open("tiny"));
  const int all_threads = DefaultThreads().count;
  for (const std::string& target : RunnableTargets()) {
    for (const int threads : all_threads > 1 ? std::vector{1, all_threads} : std::vector{1}) {
      const std::string suffix = threads > 1 ? fmt::format("/{}", threads) : "";
      const auto add = [&](const std::string& name, const std::function<void(benchmark::State&)>& run) {
        const auto on_target = [run, target](benchmark::State& state) {
          UseTarget(target);
          run(state);
          UseBestTarget();
        };
        benchmark::RegisterBenchmark((name + "/tiny/" + target + suffix).c_str(), on_target)
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      };
      // Texts that fit the context, and longer ones under the exact window rule; enough of them to fill every thread's lanes.
      const uint64_t texts = 64 * static_cast<uint64_t>(threads);
      const Amount fitting = {16 * texts, model->config().context_length}, sliding = {texts, 200};
      add("generate/text", [=](benchmark::State& state) { Generate(state, *model, threads, fitting); });
      add("generate/slide", [=](benchmark::State& state) { Generate(state, *model, threads, sliding); });
      add("score/text", [=](benchmark::State& state) { ScoreSonnet(state, *model, threads); });
    }
  }
}

}  // namespace octavo::bench
