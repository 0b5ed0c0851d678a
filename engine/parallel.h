// The engine's parallelism, the only place with oneTBB: a number of threads that run tasks side by side, and the parts of a task. Not
// installed.
#ifndef OCTAVO_ENGINE_PARALLEL_H_
#define OCTAVO_ENGINE_PARALLEL_H_

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "engine/float_control.h"

namespace octavo {

// Exactly `num_threads` threads, also beyond the number of cores. One is the caller's own.
class Team {
 public:
  explicit Team(int num_threads) : num_threads_(static_cast<size_t>(num_threads)) {}

  // Runs `work` on the calling thread, with the others at its disposal.
  template <typename Work>
  void Execute(const Work& work) const {
    const DefaultFloatControl control;
    work();
  }

  // Runs work(0, grow), and once that calls grow(), work(1, grow) … work(count - 1, grow) too, count ≤ num_threads, each on a thread of its own:
  // they may wait for each other. So one piece of work starts no threads, nor oneTBB, which takes milliseconds. Threads that are done, or have
  // nothing to do, take parts of what the others share. `work` does not throw.
  template <typename Work>
  void Grow(size_t count, const Work& work) const {
    const DefaultFloatControl control;  // also while oneTBB works, which loses the flags that are raised
    std::optional<tbb::task_group> others;
    std::atomic<bool> grown = count <= 1;
    const std::function<void()> grow = [&] {
      if (grown || grown.exchange(true)) return;
      arena().execute([&] {
        others.emplace();
        // Deferred first, so that a task for which there is no memory is not waited for.
        for (size_t i = 1; i < count; ++i) others->run(others->defer([&, i] { WorkOn(i, work, grow); }));
      });
    };
    WorkOn(0, work, grow);
    if (others) arena().execute([&] { others->wait(); });
  }

  // Splits [0, count) into at most max_pieces() pieces and runs range(piece, begin, end) for each, inside of Execute or Grow. `seconds` is what
  // they take in all on one thread, roughly: what takes less than handing it out stays in one piece.
  template <typename Range>
  void Share(size_t count, double seconds, const Range& range) const {
    constexpr double kLeastSeconds = 10e-6;  // a piece; waking a sleeping thread takes a few microseconds
    constexpr double kShortSeconds = 1e-3;
    const size_t worth = seconds < 2 * kLeastSeconds ? 1 : static_cast<size_t>(seconds / kLeastSeconds);
    const size_t pieces = std::min({count, max_pieces(), worth});
    // Where every thread has work of its own, nobody takes a piece soon.
    const bool alone = seconds < kShortSeconds && num_busy_ >= num_threads_;
    if (pieces <= 1 || alone) return range(size_t{0}, size_t{0}, count);
    const auto share = [&] {
      tbb::parallel_for(
          size_t{0}, pieces,
          [&](size_t piece) {
            const DefaultFloatControl control;
            range(piece, piece * count / pieces, (piece + 1) * count / pieces);
          },
          tbb::simple_partitioner());
    };
    // Isolated: while it waits for others' pieces, a thread must not begin another task.
    arena().execute([&] { tbb::this_task_arena::isolate(share); });
  }

  // More than threads, so that one that comes late or is disturbed takes fewer.
  size_t max_pieces() const { return num_threads_ == 1 ? 1 : 4 * num_threads_; }

 private:
  // Made when it is first asked for, which is before there are other threads.
  tbb::task_arena& arena() const {
    if (!arena_) {
      limit_ = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, num_threads_);
      arena_ = std::make_unique<tbb::task_arena>(static_cast<int>(num_threads_));
    }
    return *arena_;
  }

  // Counted while it lasts.
  template <typename Work>
  void WorkOn(size_t i, const Work& work, const std::function<void()>& grow) const {
    const DefaultFloatControl control;
    ++num_busy_;
    work(i, grow);
    --num_busy_;
  }

  size_t num_threads_;
  mutable std::atomic<size_t> num_busy_ = 0;  // in Grow
  mutable std::unique_ptr<tbb::global_control> limit_;
  mutable std::unique_ptr<tbb::task_arena> arena_;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_PARALLEL_H_
