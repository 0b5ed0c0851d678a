// Several threads really do the work: which of them make lanes and fill buffers, seen in what they take from the heap. A record that the run
// cannot get past before two threads have been seen makes that certain, not likely; a deadline turns waiting in vain into a failure.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <thread>

#include "engine/generate.h"
#include "engine/lane.h"
#include "engine/score.h"
#include "kernels/panel.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

// Threads that took memory of the kind that is looked for.
class Workers {
 public:
  enum class Sign { kNone, kLane, kPanels };

  void Watch(Sign sign) {
    const std::lock_guard lock(mutex_);
    seen_.clear();
    sign_ = sign;
  }
  void Note(size_t bytes, size_t alignment) {
    const Sign sign = sign_;
    if (sign == Sign::kNone) return;
    if (sign == Sign::kLane ? bytes != sizeof(Lane) : alignment != kPanelAlignment) return;
    const std::lock_guard lock(mutex_);
    const Sign before = sign_.exchange(Sign::kNone);  // what the set takes is no sign
    seen_.insert(std::this_thread::get_id());
    sign_ = before;
  }
  size_t count_without(std::thread::id other) {
    const std::lock_guard lock(mutex_);
    return seen_.size() - seen_.count(other);
  }

 private:
  std::mutex mutex_;
  std::atomic<Sign> sign_ = Sign::kNone;
  std::set<std::thread::id> seen_;
};

Workers workers;

// Two threads have been seen beside the one that reads, or half a minute is over.
bool WaitForTwo(std::thread::id reader) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (workers.count_without(reader) < 2) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// A run of 100 requests through `run(next, emit)`: once all are read, the output stands still from the 40th on, when whoever began has been
// back for more, until two threads have been seen.
template <typename Run>
void ExpectTwoWorkers(Workers::Sign sign, const Run& run) {
  constexpr uint64_t kCount = 100;
  std::atomic<uint64_t> given = 0, emitted = 0;
  std::atomic<std::thread::id> reader;
  bool two = false;
  workers.Watch(sign);
  run(
      [&] {
        reader = std::this_thread::get_id();
        return given < kCount ? given++, true : false;
      },
      [&] {
        while (given < kCount) std::this_thread::yield();
        if (++emitted == 40) two = WaitForTwo(reader);
      });
  workers.Watch(Workers::Sign::kNone);
  EXPECT_EQ(emitted, kCount);
  EXPECT_TRUE(two) << "one thread did all the work";
}

std::ptrdiff_t CountThreads() {
  using Iterator = std::filesystem::directory_iterator;
  return std::distance(Iterator("/proc/self/task"), Iterator());
}

// First, for threads of the pool do not end. They begin when there is something to share.
TEST(Workers, ShareTheStepsOfOneText) {
  const Model model = RandomModel({Characters("\n abc"), 8, 1, 2, 256});
  GenerateRequest request;
  request.options.max_chars = 3;
  const std::ptrdiff_t before = CountThreads();
  Generate(model, request, nullptr, {.num_threads = 1});
  EXPECT_EQ(CountThreads(), before);
  Generate(model, request, nullptr, {.num_threads = 3});
  EXPECT_GT(CountThreads(), before);
}

TEST(Workers, GenerateTogether) {
  const Model model = RandomModel(M8Shape());
  for (const int threads : {2, 5}) {
    ExpectTwoWorkers(Workers::Sign::kLane, [&](const auto& next, const auto& emit) {
      uint64_t sequence = 0;
      GenerateAll(
          model, {.num_threads = threads},
          [&]() -> std::optional<GenerateRequest> {
            if (!next()) return std::nullopt;
            GenerateRequest request;
            request.options.max_chars = 3;
            request.sequence = sequence++;
            return request;
          },
          [&](const GenerateRequest&, Completion&&) { emit(); });
    });
  }
}

TEST(Workers, ScoreTogether) {
  const Model model = RandomModel(M8Shape());
  for (const int threads : {2, 5}) {
    ExpectTwoWorkers(Workers::Sign::kPanels, [&](const auto& next, const auto& emit) {
      ScoreAll(
          model, {.num_threads = threads},
          [&] {
            return next() ? std::optional(ScoreRequest{{1, 2, 3}, 0, "", nullptr}) : std::nullopt;
          },
          [&](const ScoreRequest&, Score&&) { emit(); });
    });
  }
}

}  // namespace

void* Take(size_t bytes, size_t alignment) {
  workers.Note(bytes, alignment);
  const size_t whole = (bytes + alignment - 1) / alignment * alignment;
  if (void* memory = std::aligned_alloc(alignment, whole > 0 ? whole : alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace octavo::test

void* operator new(size_t bytes) { return octavo::test::Take(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return octavo::test::Take(bytes, static_cast<size_t>(alignment));
}
// Not inlined: where GCC inlines these and not operator new, it warns of a pair that does not match.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
