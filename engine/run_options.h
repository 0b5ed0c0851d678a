// How a run over many requests uses the machine, and how it is ended early.
#ifndef OCTAVO_ENGINE_RUN_OPTIONS_H_
#define OCTAVO_ENGINE_RUN_OPTIONS_H_

#include <atomic>
#include <functional>

namespace octavo {

// Precision of the keys and values that attention reads: bfloat16 halves the memory they take and stream through, and changes the text.
enum class KvPrecision { kF32, kBf16 };

struct RunOptions {
  int num_threads = 1;
  KvPrecision kv = KvPrecision::kF32;

  // When true, no further request is begun; those begun are finished and handed over. Anyone may set it at any time, a signal handler too.
  const std::atomic<bool>* stop = nullptr;

  // When true, those begun are dropped too, before their next step or window: only what is whole and next in order is still handed over, so
  // that all that was is a prefix of the whole run. Set `stop` before it: it does not reach who waits for input. Generate and ScoreText
  // return with an error that says so. Attend, which is one pass over one text, does not look at it. Set like `stop`.
  const std::atomic<bool>* abandon = nullptr;
  bool Abandoned() const { return abandon && abandon->load(std::memory_order_relaxed); }

  // Called, on any thread, when the run is over while `next` may still be waiting for input: should make it return. Without it, the run
  // ends when `next` returns by itself.
  std::function<void()> wake_next = {};
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_RUN_OPTIONS_H_
