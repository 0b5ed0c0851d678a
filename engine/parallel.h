// The engine's parallelism, the only place with oneTBB: an ordered pipeline and loops, on a given number of threads. All work runs with the
// default floating-point control, whatever the caller's is, which oneTBB would hand on to its threads. Not installed.
#ifndef OCTAVO_ENGINE_PARALLEL_H_
#define OCTAVO_ENGINE_PARALLEL_H_

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "engine/float_control.h"

namespace octavo {

// Runs `work` with exactly `num_threads` threads at its disposal, also beyond the number of cores.
template <typename Work>
void WithThreads(int num_threads, const Work& work) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(num_threads));
  tbb::task_arena(num_threads).execute(work);
}

// Runs work(0) … work(num_threads - 1) side by side, each on a thread of its own; they may wait for each other.
template <typename Work>
void RunOnThreads(int num_threads, const Work& work) {
  const auto controlled = [&](size_t i) {
    const DefaultFloatControl control;
    work(i);
  };
  if (num_threads == 1) return controlled(0);
  WithThreads(num_threads, [&] {
    // One task a thread: as many as the arena has, and none is split.
    tbb::parallel_for(size_t{0}, static_cast<size_t>(num_threads), controlled, tbb::simple_partitioner());
  });
}

// Runs work(0) … work(count - 1) on whatever threads are at the caller's disposal.
template <typename Work>
void ParallelFor(size_t count, const Work& work) {
  tbb::parallel_for(size_t{0}, count, [&](size_t i) {
    const DefaultFloatControl control;
    work(i);
  });
}

// next() → work(item) in parallel → emit(item, result) in the order of next; at most `in_flight` items exist at once.
template <typename Item, typename Result>
void OrderedPipeline(size_t in_flight, const std::function<std::optional<Item>()>& next,
                     const std::function<Result(const Item&)>& work,
                     const std::function<void(const Item&, Result&&)>& emit) {
  struct Token {
    Item item;
    Result result;
  };
  // Pointers, since the pipeline copies what it passes on.
  using Pointer = std::shared_ptr<Token>;
  tbb::parallel_pipeline(
      in_flight,
      tbb::make_filter<void, Pointer>(tbb::filter_mode::serial_in_order, [&](tbb::flow_control& control) -> Pointer {
        std::optional<Item> item = next();
        if (item) return std::make_shared<Token>(Token{std::move(*item), {}});
        control.stop();
        return nullptr;
      }) & tbb::make_filter<Pointer, Pointer>(tbb::filter_mode::parallel, [&](Pointer token) {
        const DefaultFloatControl control;
        token->result = work(token->item);
        return token;
      }) & tbb::make_filter<Pointer, void>(tbb::filter_mode::serial_in_order, [&](const Pointer& token) {
        emit(token->item, std::move(token->result));
      }));
}

}  // namespace octavo

#endif  // OCTAVO_ENGINE_PARALLEL_H_
