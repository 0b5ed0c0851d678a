// How requests are spread over lanes, groups and threads: lanes stay busy, nothing depends on the spread, runs end early in order, and
// work that is shared inside of a step gives the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/forward.h"
#include "engine/generate.h"
#include "engine/ordered_queue.h"
#include "engine/parallel.h"
#include "engine/score.h"
#include "kernels/targets.h"
#include "tests/testing/compare.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

using RunOptions = octavo::RunOptions;

// Kernels of one target while it lives.
class TargetScope {
 public:
  explicit TargetScope(const std::string& name) { EXPECT_TRUE(UseTarget(name)); }
  ~TargetScope() { UseBestTarget(); }
};

struct Outcome {
  std::vector<Completion> completions;
  LaneUse use;
};

Outcome RunAll(const Model& model, const std::vector<GenerateRequest>& requests, int num_threads) {
  Outcome run;
  size_t next = 0;
  run.use = GenerateAll(
      model, {.num_threads = num_threads},
      [&] { return next < requests.size() ? std::optional(requests[next++]) : std::nullopt; },
      [&](const GenerateRequest&, Completion&& completion) { run.completions.push_back(std::move(completion)); });
  return run;
}

GenerateRequest Request(uint64_t max_chars, uint64_t sequence = 0) {
  GenerateRequest request;
  request.options.max_chars = max_chars;
  request.seed = 3;
  request.sequence = sequence;
  return request;
}

// ---- lanes ----

TEST(Lanes, AreBusyWhateverTheLengths) {
  const Model model = Model::Open("tiny");
  Random random(1);
  std::vector<GenerateRequest> requests;
  for (uint64_t i = 0; i < 20'000; ++i) requests.push_back(Request(5 + random.Below(56), i));
  for (const int threads : {1, 2}) {
    const Outcome run = RunAll(model, requests, threads);
    ASSERT_EQ(run.completions.size(), requests.size());
    uint64_t characters = 0;
    for (const Completion& completion : run.completions) characters += completion.num_chars;
    EXPECT_EQ(run.use.busy, characters) << "each step of a lane writes a character";
    EXPECT_GE(static_cast<double>(run.use.busy), 0.9 * static_cast<double>(run.use.steps)) << threads << " threads";
    EXPECT_LE(run.use.busy, run.use.steps);
  }
}

// ---- the promise ----

// Lengths, temperatures, cuts, stop strings, and all three window rules beyond a context of 33, with seeds of their own.
std::vector<GenerateRequest> MixedRequests(const Model& model) {
  Random random(2);
  std::vector<GenerateRequest> requests;
  for (uint64_t i = 0; i < 90; ++i) {
    GenerateRequest& request = requests.emplace_back(Request(1 + random.Below(60), i % 7));
    request.seed = i * 1'000'003;
    request.prompt = random.Tokens(random.Below(50), model.vocabulary().size());
    request.options.sampling = {i % 4 == 0 ? 0.0 : 0.3 * static_cast<double>(i % 5 + 1), i % 3 == 1 ? 5u : 0u,
                                i % 5 == 2 ? 0.7 : 1.0};
    request.options.overflow = std::array{Overflow::kSlide, Overflow::kRestart, Overflow::kStop}[i % 3];
    if (i % 6 == 5) request.options.stops = {"a", "XY"};
  }
  return requests;
}

::testing::AssertionResult Same(const Completion& actual, const Completion& expected) {
  if (actual.text == expected.text && actual.finish == expected.finish && actual.num_chars == expected.num_chars &&
      actual.log_probability == expected.log_probability && actual.error == expected.error) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << Quote(actual.text) << " " << actual.log_probability << "; expected "
                                       << Quote(expected.text) << " " << expected.log_probability;
}

TEST(Promise, SameTextWhateverTheRun) {
  const Model model = RandomModel(ModdShape());
  const std::vector<GenerateRequest> requests = MixedRequests(model);
  std::vector<Completion> expected;
  std::set<Finish> finishes;
  std::vector<std::string> targets;
  for (const std::string& target : RunnableTargets()) {
    const TargetScope scope(target);
    if (!HasFusedMultiplyAdd(target)) continue;
    targets.push_back(target);
    if (expected.empty()) {
      for (const GenerateRequest& request : requests) {
        expected.push_back(Generate(model, request));
        finishes.insert(expected.back().finish);
      }
    }
    Random random(4);
    std::vector<size_t> order(requests.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (const int threads : {1, 2, 3, 16}) {
      for (int shuffle = 0; shuffle < 3; ++shuffle) {
        std::vector<GenerateRequest> ordered;
        for (const size_t i : order) ordered.push_back(requests[i]);
        const Outcome run = RunAll(model, ordered, threads);
        ASSERT_EQ(run.completions.size(), requests.size());
        for (size_t i = 0; i < order.size(); ++i) {
          ASSERT_TRUE(Same(run.completions[i], expected[order[i]])) << target << ", " << threads << " threads";
        }
        for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
      }
    }
  }
  EXPECT_FALSE(targets.empty());
  EXPECT_EQ(finishes, (std::set{Finish::kLength, Finish::kStop, Finish::kContext}));
}

// ---- the end of a run ----

TEST(Ending, StopFinishesWhatWasBegun) {
  const Model model = RandomModel(M8Shape());
  for (const int threads : {1, 3}) {
    std::atomic<bool> stop = false;
    std::atomic<uint64_t> given = 0, emitted = 0;
    std::thread stopper([&] {
      while (emitted < 300) std::this_thread::yield();
      stop = true;
    });
    uint64_t at_stop = 0;
    GenerateAll(
        model, {.num_threads = threads, .stop = &stop},
        [&]() -> std::optional<GenerateRequest> {
          if (!stop) at_stop = given;
          return Request(7, given++);
        },
        [&](const GenerateRequest& request, Completion&& completion) {
          EXPECT_EQ(request.sequence, emitted++);
          EXPECT_EQ(completion.num_chars, 7u);
          EXPECT_EQ(completion.error, "");
        });
    stopper.join();
    EXPECT_GE(emitted, 300u);
    EXPECT_LE(emitted, given) << "nothing else";
    EXPECT_LE(given, at_stop + 2) << "no further request is read";
  }
}

TEST(Ending, NothingIsBegunWhenItIsStoppedAlready) {
  const Model model = RandomModel(M8Shape());
  const std::atomic<bool> stop = true;
  uint64_t emitted = 0;
  GenerateAll(
      model, {.num_threads = 2, .stop = &stop}, [&]() -> std::optional<GenerateRequest> { return Request(7); },
      [&](const GenerateRequest&, Completion&&) { ++emitted; });
  EXPECT_EQ(emitted, 0u);
}

// An input that is silent behind its first request until somebody wakes it.
class SilentInput {
 public:
  bool Next() {
    std::unique_lock lock(mutex_);
    if (!std::exchange(given_, true)) return true;
    changed_.wait(lock, [&] { return woken_; });
    return false;
  }
  void Wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool given_ = false, woken_ = false;
};

TEST(Ending, FailingOutputWakesASilentInput) {
  const Model model = RandomModel(M8Shape());
  for (const int threads : {1, 2}) {
    SilentInput input;
    const RunOptions options = {.num_threads = threads, .wake_next = [&] { input.Wake(); }};
    EXPECT_THROW(GenerateAll(
                     model, options, [&] { return input.Next() ? std::optional(Request(3)) : std::nullopt; },
                     [](const GenerateRequest&, Completion&&) { throw std::runtime_error("the disk is full"); }),
                 std::runtime_error);
    SilentInput texts;
    const RunOptions score = {.num_threads = threads, .wake_next = [&] { texts.Wake(); }};
    EXPECT_THROW(ScoreAll(
                     model, score,
                     [&] {
                       return texts.Next() ? std::optional(ScoreRequest{{1, 2, 3}, 0, "", {}}) : std::nullopt;
                     },
                     [](const ScoreRequest&, Score&&) { throw std::runtime_error("the disk is full"); }),
                 std::runtime_error);
  }
}

// What is there is worked on while the input is silent.
TEST(Ending, RecordsDoNotWaitForInput) {
  const Model model = RandomModel(M8Shape());
  SilentInput input;
  uint64_t emitted = 0;
  GenerateAll(
      model, {.num_threads = 2}, [&] { return input.Next() ? std::optional(Request(3)) : std::nullopt; },
      [&](const GenerateRequest&, Completion&&) {
        ++emitted;
        input.Wake();
      });
  EXPECT_EQ(emitted, 1u);
}

// ---- the spread over groups ----

TEST(Queue, GivesEachWorkerAsMany) {
  using Queue = OrderedQueue<int, int>;
  int given = 0;
  std::vector<int> emitted;
  const Queue::Next next = [&]() -> std::optional<int> { return given < 10 ? std::optional(given++) : std::nullopt; };
  const Queue::Emit emit = [&](const int& request, int&& result) {
    EXPECT_EQ(result, -request);
    emitted.push_back(request);
  };
  const RunOptions options;
  Queue queue(next, emit, options, 4, 100);
  std::vector<Queue::Item> items;
  while (given < 10) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the reader sees the end
  // Of ten requests, one of four workers gets three.
  for (size_t held = 0; held < 3; ++held) items.push_back(*queue.Take(held));
  EXPECT_FALSE(queue.Take(3).has_value());
  for (size_t worker = 0; worker < 3; ++worker) {
    for (size_t held = 0; auto item = queue.Take(held); ++held) items.push_back(*item);
  }
  ASSERT_EQ(items.size(), 10u);
  EXPECT_FALSE(queue.Take(0).has_value());
  // Results leave in order, whatever the order in which they come.
  std::reverse(items.begin(), items.end());
  for (Queue::Item& item : items) {
    EXPECT_TRUE(emitted.empty());
    queue.Put(item.number, std::move(item.request), -item.request);
  }
  EXPECT_EQ(emitted, (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

// ---- the team ----

TEST(Team, SharesEachPartOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const Team team(threads);
    for (const size_t count : {0, 1, 2, 3, 5, 7, 8, 9, 16, 31, 64, 65, 1000}) {
      for (const double seconds : {0.0, 19e-6, 20e-6, 50e-6, 1.0}) {
        std::vector<std::atomic<int>> times(count);
        std::atomic<size_t> num_pieces = 0;
        std::mutex mutex;
        std::set<size_t> pieces;
        team.Execute([&] {
          team.Share(count, seconds, [&](size_t piece, size_t begin, size_t end) {
            ++num_pieces;
            for (size_t i = begin; i < end; ++i) ++times[i];
            const std::lock_guard lock(mutex);
            pieces.insert(piece);
          });
        });
        for (size_t i = 0; i < count; ++i) ASSERT_EQ(times[i], 1) << i << " of " << count;
        EXPECT_EQ(pieces.size(), num_pieces) << "each piece has a number of its own";
        EXPECT_LT(*pieces.rbegin(), team.max_pieces());
        EXPECT_LE(num_pieces, seconds < 20e-6 ? 1 : std::max<size_t>(count, 1)) << "what is short stays in one piece";
        if (threads > 1 && seconds == 1.0 && count >= 64) {
          EXPECT_GE(num_pieces, static_cast<size_t>(threads));
        }
      }
    }
  }
}

TEST(Team, SharesInsideOfForEach) {
  for (const int threads : {2, 3, 5}) {
    const Team team(threads);
    for (size_t count = 1; count <= static_cast<size_t>(threads); ++count) {
      std::vector<std::atomic<int>> times(count * 100);
      std::atomic<size_t> inside = 0;
      team.ForEach(count, [&](size_t i) {
        // They wait for each other: each has a thread of its own.
        for (++inside; inside < count;) std::this_thread::yield();
        for (int round = 0; round < 20; ++round) {
          team.Share(100, 1.0, [&](size_t, size_t begin, size_t end) {
            for (size_t k = begin; k < end; ++k) ++times[i * 100 + k];
          });
        }
      });
      for (const std::atomic<int>& number : times) ASSERT_EQ(number, 20);
    }
  }
}

// ---- work shared inside of a step ----

// Products of 256 · 768 and more, attention of 8 heads over 64 positions: all of them are worth sharing.
ModelShape WideShape() { return {Characters("\nabcdefg"), 64, 2, 8, 256}; }

// Logits of `count` rows of a group of panels: what stands in the others has no meaning.
void AppendRows(const float* panels, size_t count, size_t vocabulary, std::vector<float>& out) {
  for (size_t row = 0; row < count; ++row) {
    const float* from = panels + row / kPanelRows * kPanelRows * vocabulary + row % kPanelRows;
    for (size_t v = 0; v < vocabulary; ++v) out.push_back(from[v * kPanelRows]);
  }
}

std::vector<float> ReadText(const Model& model, const Team* team, KvPrecision kv, const std::vector<TokenId>& text) {
  TextPass pass(model, team, kv);
  pass.Read(text, 0);
  std::vector<float> logits;
  for (size_t begin = 0; begin < text.size(); begin += kPanelRows) {
    AppendRows(pass.Logits(begin / kPanelRows), std::min(kPanelRows, text.size() - begin), model.vocabulary().size(),
               logits);
  }
  return logits;
}

// Lanes that stand at different positions, the first ones behind a text that was read in one piece.
std::vector<float> WriteSteps(const Model& model, const Team* team, KvPrecision kv, const std::vector<TokenId>& text,
                              size_t num_live) {
  const auto context = static_cast<int32_t>(model.config().context_length);
  StepPass pass(model, NumPanels(num_live), team, kv);
  TextPass reader(model, team, kv);
  std::vector<int32_t> tokens(pass.num_lanes()), positions(pass.num_lanes());
  for (size_t lane = 0; lane < std::min<size_t>(num_live, 20); ++lane) {
    const size_t count = 1 + lane * 7 % 60;
    reader.Read(std::span(text).first(count), count - 1);
    pass.Load(lane, reader, count);
    positions[lane] = static_cast<int32_t>(count);
  }
  std::vector<float> logits;
  for (size_t step = 0; step < 12; ++step) {
    for (size_t lane = 0; lane < num_live; ++lane) {
      if (positions[lane] == context) positions[lane] = 0;
      tokens[lane] = text[(step * 7 + lane) % text.size()];
    }
    AppendRows(pass.Step(tokens.data(), positions.data(), num_live), num_live, model.vocabulary().size(), logits);
    for (size_t lane = 0; lane < num_live; ++lane) ++positions[lane];
  }
  return logits;
}

void ExpectSameBitsWithTeams(const Model& model, KvPrecision kv) {
  const std::vector<TokenId> text = Random(6).Tokens(64, model.vocabulary().size()), two = {text[0], text[1]};
  const std::vector<float> whole = ReadText(model, nullptr, kv, text), part = ReadText(model, nullptr, kv, two);
  for (const int threads : {1, 2, 4}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    const Team team(threads);
    team.Execute([&] {
      EXPECT_TRUE(SameBits(ReadText(model, &team, kv, text), whole));
      EXPECT_TRUE(SameBits(ReadText(model, &team, kv, two), part));
    });
  }
  for (const size_t num_live : {1, 5, 37}) {
    const std::vector<float> alone = WriteSteps(model, nullptr, kv, text, num_live);
    for (const int threads : {1, 2, 4}) {
      SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(num_live) + " lanes");
      const Team team(threads);
      team.Execute([&] { EXPECT_TRUE(SameBits(WriteSteps(model, &team, kv, text, num_live), alone)); });
    }
  }
}

TEST(Sharing, GivesTheSameBits) {
  const Model model = RandomModel(WideShape());
  for (const std::string& target : RunnableTargets()) {
    const TargetScope scope(target);
    for (const KvPrecision kv : {KvPrecision::kF32, KvPrecision::kBf16}) {
      SCOPED_TRACE(target + (kv == KvPrecision::kF32 ? ", f32" : ", bf16"));
      ExpectSameBitsWithTeams(model, kv);
    }
  }
}

}  // namespace
}  // namespace octavo::test
