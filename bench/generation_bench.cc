// Whole models from text to text: what a user of generate and score gets, in characters a second.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "bench/roofs.h"
#include "engine/check/models.h"
#include "engine/generate.h"
#include "engine/model.h"
#include "engine/score.h"
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

// What is written: `texts` times `chars` characters from the start character on.
struct Writing {
  std::shared_ptr<const Model> model;
  uint64_t texts, chars;
  RunOptions options;
};

std::vector<Completion> Write(const Writing& writing) {
  std::vector<Completion> completions;
  uint64_t begun = 0;
  GenerateAll(
      *writing.model, writing.options,
      [&]() -> std::optional<GenerateRequest> {
        if (begun == writing.texts) return std::nullopt;
        GenerateRequest request;
        request.options.max_chars = writing.chars;
        request.seed = 1;
        request.sequence = begun++;
        return request;
      },
      [&](const GenerateRequest&, Completion&& completion) { completions.push_back(std::move(completion)); });
  return completions;
}

// Useful work of a text of `count` characters: 2·(12·L·W² + W·V) + 4·L·W·(t + 1) for the character at position t; behind the context T all T
// positions, but of the last layer only keys and values of all and the rest of the last.
double UsefulFlop(const ModelConfig& config, uint64_t count) {
  const double width = static_cast<double>(config.width), layers = static_cast<double>(config.num_layers),
               context = static_cast<double>(config.context_length);
  const double head = 2 * width * static_cast<double>(config.vocabulary_size), block = 24 * width * width;
  const double n = std::min(static_cast<double>(count), context);
  const double fitting = n * (layers * block + head) + 4 * layers * width * n * (n + 1) / 2;
  const double whole_layer = context * block + 2 * width * context * (context + 1);
  const double last_layer = 4 * width * width * context + (block - 4 * width * width) + 4 * width * context;
  return fitting + (static_cast<double>(count) - n) * ((layers - 1) * whole_layer + last_layer + head);
}

// Bytes that one text alone reads for a character, at the middle of `count`: all weights, and the keys and values before it.
double BytesPerChar(const ModelConfig& config, uint64_t count) {
  const double width = static_cast<double>(config.width), layers = static_cast<double>(config.num_layers);
  const double weights = 12 * layers * width * width + width * static_cast<double>(config.vocabulary_size);
  return sizeof(float) * (weights + layers * width * static_cast<double>(count + 1));
}

// What is wrong with them, or nothing: scoring a text must give back the probability that generation reported of what it wrote.
std::string CheckCompletions(const Writing& writing, const std::vector<Completion>& completions) {
  const Model& model = *writing.model;
  if (completions.size() != writing.texts) return fmt::format("{} completions", completions.size());
  for (size_t i = 0; i < completions.size(); ++i) {
    const Completion& completion = completions[i];
    if (completion.num_chars != writing.chars) return fmt::format("{} characters", completion.num_chars);
    if (i >= 8) continue;
    ScoreRequest request;
    request.text = model.vocabulary().Encode(completion.text);
    request.text.insert(request.text.begin(), model.start_token());
    // Behind the context the two read different windows, so there it only has to be possible.
    const double nats = ScoreText(model, request, writing.options).nats, written = -completion.log_probability;
    const bool whole = writing.chars <= model.config().context_length;
    const double least = whole ? nats * 0.999 : 0,
                 most = whole ? nats * 1.001 : kUniformNats * static_cast<double>(writing.chars);
    if (!(written >= least && written <= most))
      return fmt::format("generation reported {} nats, scoring {}", written, nats);
  }
  return "";
}

// Runs and roofs are read in turn, on as many threads; the counters are of the medians. A reading of a roof is a hundred times as short as a run, so
// there are several before each.
void Generate(benchmark::State& state, const std::string& name, const Writing& writing) {
  static std::map<std::string, std::string> results;  // Google Benchmark calls a benchmark several times
  const auto [found, is_new] = results.try_emplace(name);
  if (is_new) found->second = CheckCompletions(writing, Write(writing));
  if (!found->second.empty()) return state.SkipWithError(found->second.c_str());
  constexpr int kRoofReadings = 9;
  const bool streams = writing.texts == 1;
  std::vector<double> seconds, peaks, bandwidths;
  for (auto _ : state) {
    for (int i = 0; i < kRoofReadings; ++i) {
      peaks.push_back(ReadPeak(writing.options.num_threads));
      if (streams) bandwidths.push_back(ReadMemory(writing.options.num_threads));
    }
    seconds.push_back(SecondsOf([&] { benchmark::DoNotOptimize(Write(writing).data()); }));
    state.SetIterationTime(seconds.back());
  }
  const double texts = static_cast<double>(writing.texts), chars = static_cast<double>(writing.chars);
  const double median = Median(seconds);
  state.counters["chars/s"] = texts * chars / median;
  state.counters["of_peak"] = texts * UsefulFlop(writing.model->config(), writing.chars) / median / Median(peaks);
  if (streams)
    state.counters["of_memory"] =
        chars * BytesPerChar(writing.model->config(), writing.chars) / median / Median(bandwidths);
  CountTrust(state, name, seconds);
}

void ScoreSonnet(benchmark::State& state, const std::string& name, const Model& model, int num_threads) {
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
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(SecondsOf(score));
    benchmark::DoNotOptimize(nats);
    state.SetIterationTime(seconds.back());
  }
  state.counters["chars/s"] = chars / Median(seconds);
  CountTrust(state, name, seconds);
}

// A model of random weights, made when it is first needed.
std::shared_ptr<const Model> RandomModelOf(const Shape& shape) {
  static std::map<std::string, std::shared_ptr<const Model>> models;
  std::shared_ptr<const Model>& model = models[shape.name];
  if (!model) {
    ModelConfig config;
    config.width = shape.width;
    config.num_heads = shape.num_heads;
    config.num_layers = shape.num_layers;
    config.context_length = shape.context_length;
    config.vocabulary_size = shape.vocabulary_size;
    config.activation = ActivationKind::kGeluTanh;
    check::Random random(1);
    model = std::make_shared<const Model>(check::RandomModel(random, config));
  }
  return model;
}

void Register(const std::string& name, const std::string& target,
              const std::function<void(benchmark::State&, const std::string&)>& run) {
  const auto on_target = [=](benchmark::State& state) {
    UseTarget(target);
    run(state, name);
    UseBestTarget();
  };
  benchmark::RegisterBenchmark(name.c_str(), on_target)->UseManualTime()->Unit(benchmark::kMillisecond);
}

}  // namespace

void RegisterGeneration() {
  const auto tiny = std::make_shared<const Model>(Model::Open("tiny"));
  for (const std::string& target : RunnableTargets()) {
    for (const int threads : ThreadCounts()) {
      const auto add = [&](const std::string& name,
                           const std::function<void(benchmark::State&, const std::string&)>& run) {
        Register(NameOf(name, target, threads), target, run);
      };
      const auto write = [&](const std::string& name, const std::function<std::shared_ptr<const Model>()>& model,
                             uint64_t texts, uint64_t chars, KvPrecision kv = KvPrecision::kF32) {
        add(name, [=](benchmark::State& state, const std::string& full_name) {
          Generate(state, full_name, {model(), texts, chars, {.num_threads = threads, .kv = kv}});
        });
      };
      const auto tiny_model = [tiny] { return tiny; };
      // Enough texts to fill every thread's lanes many times.
      const uint64_t many = 1024 * static_cast<uint64_t>(threads);
      write("generate/text/tiny", tiny_model, many, tiny->config().context_length);
      write("generate/text-bf16/tiny", tiny_model, many, tiny->config().context_length, KvPrecision::kBf16);
      // Without it these would take half a minute each.
      if (HasFusedMultiplyAdd(target)) {
        write("generate/slide/tiny", tiny_model, 64 * static_cast<uint64_t>(threads), 500);
        write(
            "generate/text/small", [] { return std::make_shared<const Model>(Model::Open("small")); }, 1024,
            kSmall.context_length);
        write(
            "generate/batch64/baby", [] { return RandomModelOf(kBaby); }, 64, 128);
        write(
            "generate/batch1/baby", [] { return RandomModelOf(kBaby); }, 1, 128);
      }
      add("score/text/tiny", [=](benchmark::State& state, const std::string& full_name) {
        ScoreSonnet(state, full_name, *tiny, threads);
      });
    }
  }
}

}  // namespace octavo::bench
