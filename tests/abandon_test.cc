// RunOptions::abandon: what is in hand is dropped, what was handed over is a prefix, and nobody is left waiting.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "engine/generate.h"
#include "engine/score.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

using RunOptions = octavo::RunOptions;

constexpr uint64_t kForEver = uint64_t{1} << 40;

GenerateRequest Request(uint64_t max_chars, uint64_t sequence) {
  GenerateRequest request;
  request.options.max_chars = max_chars;
  request.options.overflow = Overflow::kRestart;
  request.seed = 3;
  request.sequence = sequence;
  return request;
}

// The request with number 300 has no end; those behind it fill the window of the queue, so that the other groups wait for more.
TEST(Abandon, DropsWhatIsInHandAndWhatIsBehindIt) {
  const Model model = RandomModel(M8Shape());
  for (const int threads : {1, 2, 5}) {
    for (const Overflow overflow : {Overflow::kSlide, Overflow::kRestart}) {
      std::atomic<bool> stop = false, abandon = false;
      std::atomic<uint64_t> given = 0;
      std::atomic<uint64_t> emitted = 0;
      std::thread stopper([&] {
        // Until all before the endless one are out and nothing more is read: all behind it wait for it.
        for (uint64_t before = 0; before < 301 || before != given || emitted < 300;) {
          before = given;
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        stop = true;
        abandon = true;
      });
      GenerateAll(
          model, {.num_threads = threads, .stop = &stop, .abandon = &abandon},
          [&]() -> std::optional<GenerateRequest> {
            GenerateRequest request = Request(given == 300 ? kForEver : 7, given);
            request.options.overflow = overflow;
            ++given;
            return request;
          },
          [&](const GenerateRequest& request, Completion&& completion) {
            EXPECT_EQ(request.sequence, emitted++);
            EXPECT_EQ(completion.num_chars, 7u);
            EXPECT_EQ(completion.error, "");
          });
      stopper.join();
      EXPECT_EQ(emitted, 300u) << threads << " threads: those before it and none behind it";
    }
  }
}

TEST(Abandon, OneCompletionSaysSo) {
  const Model model = RandomModel(M8Shape());
  std::atomic<bool> abandon = false;
  uint64_t shown = 0;
  const Completion completion =
      Generate(model, Request(kForEver, 0), [&](std::string_view) { abandon = ++shown == 100; }, {.abandon = &abandon});
  EXPECT_EQ(shown, 100u) << "ends before the next step";
  EXPECT_EQ(completion.finish, Finish::kError);
  EXPECT_EQ(completion.error, "the run was abandoned before the text was whole");
  EXPECT_EQ(completion.text, "");
  EXPECT_EQ(Generate(model, Request(7, 0), nullptr, {.abandon = nullptr}).error, "");
}

ScoreRequest Text(size_t length) {
  ScoreRequest request;
  request.text.assign(length, 2);
  request.stride = 1;
  return request;
}

TEST(Abandon, ScoresAreWholeOrNotThere) {
  const Model model = RandomModel(M8Shape());
  constexpr size_t kLong = 5'000'000;  // many seconds
  for (const int threads : {1, 3}) {
    std::atomic<bool> abandon = false;
    std::atomic<uint64_t> given = 0;
    std::thread stopper([&] {
      while (given < 3) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // likely within the long text
      abandon = true;
    });
    uint64_t emitted = 0;
    ScoreAll(
        model, {.num_threads = threads, .abandon = &abandon},
        [&]() -> std::optional<ScoreRequest> {
          if (given >= 3) return std::nullopt;
          return Text(given++ == 1 ? kLong : 10);
        },
        [&](const ScoreRequest& request, Score&& score) {
          EXPECT_EQ(score.log_probabilities.size(), request.text.size() - 1);
          EXPECT_EQ(emitted++, 0u) << "the first, which is short";
        });
    stopper.join();
    EXPECT_LE(emitted, 1u);
  }
  const std::atomic<bool> abandon = true;
  const Score score = ScoreText(model, Text(100), {.num_threads = 2, .abandon = &abandon});
  EXPECT_EQ(score.error, "the run was abandoned before the text was scored");
  EXPECT_TRUE(score.log_probabilities.empty());
}

}  // namespace
}  // namespace octavo::test
