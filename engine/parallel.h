// The engine's parallelism, the only place with oneTBB: a number of threads that run tasks side by side, and the parts of a task. Not
// installed.
#ifndef OCTAVO_ENGINE_PARALLEL_H_
#define OCTAVO_ENGINE_PARALLEL_H_

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>

#include "engine/crew.h"
#include "engine/fail.h"
#include "engine/float_control.h"
#include "engine/run_options.h"

namespace octavo {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OCTAVO_SHOW_ORDER
#endif
#endif

// Shows the thread sanitizer that what was before a piece is handed out comes before it, and the piece before what
// comes after all: it does not see into oneTBB, which makes that order.
class ShownOrder {
 public:
#ifdef OCTAVO_SHOW_ORDER
  void Pass() { ++passed_; }

 private:
  std::atomic<int> passed_ = 0;
#else
  void Pass() {}
#endif
};

// At most `num_threads` threads, also beyond the number of cores: as many as the system starts. One is the caller's
// own. The others live from when they are first of use until the end of Execute or Grow.
class Team {
 public:
  explicit Team(int num_threads) : num_threads_(static_cast<size_t>(num_threads)) {}

  // Tells options.on_fewer_threads when the system refuses some. `options` must outlive the team. `alone`: for the
  // caller's own thread only.
  explicit Team(const RunOptions& options, bool alone = false) : Team(alone ? 1 : options.num_threads) {
    on_fewer_ = &options.on_fewer_threads;
  }

  // Runs `work` on the calling thread, with the others at its disposal.
  template <typename Work>
  void Execute(const Work& work) const {
    const DefaultFloatControl control;
    const Dismissal dismissal{crew_};
    work();
  }

  // Runs work(0, grow), and once that calls grow(), work(1, grow) … work(count - 1, grow) too, count ≤ num_threads,
  // each on a thread of its own: they may wait for each other. grow() says how many run: fewer where the system refuses
  // threads. So one piece of work starts no threads, nor oneTBB, which takes milliseconds. Threads that are done, or
  // have nothing to do, take parts of what the others share. `work` does not throw.
  template <typename Work>
  void Grow(size_t count, const Work& work) const {
    const DefaultFloatControl control;  // also while oneTBB works, which loses the flags that are raised
    std::optional<Gate> done;
    std::atomic<size_t> num_left = 1;
    size_t num_running = 1;  // changes before others run
    bool grown = count <= 1;
    std::function<size_t()> grow;
    const std::function<void(size_t)> begin = [&](size_t i) noexcept {
      WorkOn(i, work, grow);
      if (--num_left == 0) done->Open();
    };
    grow = [&] {
      if (grown) return num_running;
      done.emplace();
      Crew& others = crew();
      grown = true;
      num_running = std::min(count, others.size() + 1);
      num_left = num_running;
      others.Begin(num_running - 1, begin);
      return num_running;
    };
    const Dismissal dismissal{crew_};  // before the rest goes that its threads use
    WorkOn(0, work, grow);
    if (--num_left == 0) return;
    try {
      arena_->execute([&] { done->WaitAndShare(); });
    } catch (...) {  // no memory to enter the arena with
      done->Wait();
    }
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
    const auto alone = [&] { return crew().size() == 0 || (seconds < kShortSeconds && num_busy_ > crew().size()); };
    if (pieces <= 1 || alone()) return range(size_t{0}, size_t{0}, count);
    ShownOrder order;
    const auto run = [&](size_t piece) {
      const DefaultFloatControl control;
      order.Pass();
      range(piece, piece * count / pieces, (piece + 1) * count / pieces);
      order.Pass();
    };
    const auto share = [&] {
      order.Pass();
      tbb::parallel_for(
          size_t{0}, pieces, [&run](size_t piece) { run(piece); }, tbb::simple_partitioner());
      order.Pass();
    };
    // Isolated: while it waits for others' pieces, a thread must not begin another task.
    arena_->execute([&] { tbb::this_task_arena::isolate(share); });
  }

  // More than threads, so that one that comes late or is disturbed takes fewer.
  size_t max_pieces() const { return num_threads_ == 1 ? 1 : 4 * num_threads_; }

 private:
  struct Dismissal {
    std::optional<Crew>& crew;
    ~Dismissal() { crew.reset(); }
  };

  // Made when it is first asked for, which is before there are other threads.
  Crew& crew() const {
    if (crew_) return *crew_;
    const int places = static_cast<int>(num_threads_);
    if (!arena_)
      arena_.emplace(places, static_cast<unsigned>(places));  // all reserved: none is for a thread of oneTBB's own
    crew_.emplace(*arena_, num_threads_ - 1);
    const size_t num_there = crew_->size() + 1;
    if (num_there < num_threads_ && on_fewer_ && *on_fewer_ && !told_) {
      told_ = true;
      const DefaultFloatControl control;
      (*on_fewer_)(static_cast<int>(num_there),
                   fmt::format("only {} of {} threads could be started", num_there, num_threads_));
    }
    return *crew_;
  }

  // Counted while it lasts.
  template <typename Work>
  void WorkOn(size_t i, const Work& work, const std::function<size_t()>& grow) const {
    const DefaultFloatControl control;
    ++num_busy_;
    work(i, grow);
    --num_busy_;
  }

  size_t num_threads_;
  const FewerThreads* on_fewer_ = nullptr;
  mutable bool told_ = false;
  mutable std::atomic<size_t> num_busy_ = 0;  // in Grow
  mutable std::optional<tbb::task_arena> arena_;
  mutable std::optional<Crew> crew_;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_PARALLEL_H_
