// How requests are spread over lanes, groups and threads: lanes stay busy, nothing depends on the spread, and runs end early in order.
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

#include "engine/generate.h"
#include "engine/ordered_queue.h"
#include "engine/score.h"
#include "kernels/targets.h"
#include "tests/testing/completions.h"
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
    LaneUse use;
    const std::vector<Completion> completions = RunAll(model, requests, threads, KvPrecision::kF32, &use);
    uint64_t characters = 0;
    for (const Completion& completion : completions) characters += completion.num_chars;
    EXPECT_EQ(use.busy, characters) << "each step of a lane writes a character";
    EXPECT_GE(static_cast<double>(use.busy), 0.9 * static_cast<double>(use.steps)) << threads << " threads";
    EXPECT_LE(use.busy, use.steps);
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

void ExpectSameTextWhateverTheRun(KvPrecision kv) {
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
        expected.push_back(Generate(model, request, nullptr, {.kv = kv}));
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
        const std::vector<Completion> completions = RunAll(model, ordered, threads, kv);
        ASSERT_EQ(completions.size(), requests.size());
        for (size_t i = 0; i < order.size(); ++i) {
          ASSERT_TRUE(Same(completions[i], expected[order[i]])) << target << ", " << threads << " threads";
        }
        for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
      }
    }
  }
  EXPECT_FALSE(targets.empty());
  EXPECT_EQ(finishes, (std::set{Finish::kLength, Finish::kStop, Finish::kContext}));
}

TEST(Promise, SameTextWhateverTheRun) { ExpectSameTextWhateverTheRun(KvPrecision::kF32); }
TEST(Promise, SameTextWhateverTheRunWithASixteenBitCache) { ExpectSameTextWhateverTheRun(KvPrecision::kBf16); }

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
  explicit SilentInput(size_t count = 1) : left_(count) {}
  bool Next() {
    std::unique_lock lock(mutex_);
    if (left_ > 0) return left_-- > 0;
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
  size_t left_;
  bool woken_ = false;
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

// Whoever sets the flag need not know who waits for what; wake_next is all that it takes.
TEST(Ending, StopReachesASilentInput) {
  const Model model = RandomModel(M8Shape());
  for (const int threads : {1, 2}) {
    for (const size_t count : {0, 1, 40}) {
      std::atomic<bool> stop = false;
      SilentInput input(count), texts(count);
      const auto options = [&](SilentInput& silent) {
        return RunOptions{.num_threads = threads, .stop = &stop, .wake_next = [&] { silent.Wake(); }};
      };
      const auto stop_soon = [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        stop = true;
      };
      uint64_t emitted = 0;
      std::thread stopper(stop_soon);
      GenerateAll(
          model, options(input), [&] { return input.Next() ? std::optional(Request(3)) : std::nullopt; },
          [&](const GenerateRequest&, Completion&&) { ++emitted; });
      stopper.join();
      EXPECT_EQ(emitted, count);
      stop = false;
      stopper = std::thread(stop_soon);
      ScoreAll(
          model, options(texts),
          [&] {
            return texts.Next() ? std::optional(ScoreRequest{{1, 2, 3}, 0, "", {}}) : std::nullopt;
          },
          [&](const ScoreRequest&, Score&&) { --emitted; });
      stopper.join();
      EXPECT_EQ(emitted, 0u);
    }
  }
}

// The input says what went wrong only when it is woken, behind the stop.
TEST(Ending, ErrorOfTheInputIsNotLost) {
  const Model model = RandomModel(M8Shape());
  for (int round = 0; round < 20; ++round) {
    SilentInput input;
    std::atomic<bool> stop = false;
    const RunOptions options = {.num_threads = 2, .stop = &stop, .wake_next = [&] { input.Wake(); }};
    EXPECT_THROW(GenerateAll(
                     model, options,
                     [&] {
                       if (!input.Next()) throw std::runtime_error("the pipe is broken");
                       return std::optional(Request(3));
                     },
                     [&](const GenerateRequest&, Completion&&) { stop = true; }),
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

// A worker that waits for a request leaves when another's record is the last, although the input stays silent.
TEST(Ending, StopReachesWhoWaits) {
  const Model model = RandomModel(M8Shape());
  for (const int threads : {1, 2, 3}) {
    constexpr uint64_t kCount = 8;  // so that all threads are asked for
    SilentInput input(kCount);
    std::atomic<bool> stop = false;
    uint64_t emitted = 0;
    GenerateAll(
        model, {.num_threads = threads, .stop = &stop, .wake_next = [&] { input.Wake(); }},
        [&] { return input.Next() ? std::optional(Request(3)) : std::nullopt; },
        [&](const GenerateRequest&, Completion&&) {
          if (++emitted < kCount) return;
          // The others are waiting by now.
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          stop = true;
        });
    EXPECT_EQ(emitted, kCount);
  }
}

// ---- the spread over groups ----

TEST(Queue, GivesEachWorkerAsMany) {
  using Queue = OrderedQueue<int, int>;
  std::atomic<int> given = 0;
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

}  // namespace
}  // namespace octavo::test
