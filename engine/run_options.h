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

  // Called, on any thread, when the run is over while `next` may still be waiting for input: should make it return. Without it, the run
  // ends when `next` returns by itself.
  std::function<void()> wake_next = {};
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_RUN_OPTIONS_H_
