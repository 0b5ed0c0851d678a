// How a run over many requests uses the machine, and how it is ended early.
#ifndef OCTAVO_ENGINE_RUN_OPTIONS_H_
#define OCTAVO_ENGINE_RUN_OPTIONS_H_

#include <atomic>
#include <functional>
#include <string_view>

namespace octavo {

// Precision of the keys and values that attention reads: bfloat16 halves the memory they take and stream through, and changes the text.
enum class KvPrecision { kF32, kBf16 };

// How many threads compute, and one line that says what could not be started.
using FewerThreads = std::function<void(int num_threads, std::string_view what)>;

// The functions here and those that a run is given beside (next, emit, on_text) are called with the default
// floating-point control; what they change of it is undone.
struct RunOptions {
  int num_threads = 1;
  KvPrecision kv = KvPrecision::kF32;

  // When true, no further request is begun; those begun are finished and handed over. Anyone may set it at any time, a
  // signal handler too: a run whose input is silent notices within 50 ms, calls wake_next and ends.
  const std::atomic<bool>* stop = nullptr;

  // When true, those begun are dropped too, before their next step or window: only what is whole and next in order is still handed over, so
  // that all that was is a prefix of the whole run. Set `stop` before it: it does not reach who waits for input. Generate and ScoreText
  // return with an error that says so. Attend, which is one pass over one text, does not look at it. Set like `stop`.
  const std::atomic<bool>* abandon = nullptr;
  bool Abandoned() const { return abandon && abandon->load(std::memory_order_relaxed); }

  // Called, on any thread, when the run is over while `next` may still be waiting for input: should make it return, also where it begins to
  // wait a moment later. Without it, the run ends when `next` returns by itself.
  std::function<void()> wake_next = {};

  // Called, on any thread, when the system refuses threads (a limit of the user, of the container, no memory for
  // stacks) or there is no memory for what one works with: the run goes on with those there are, with the same results,
  // down to the caller's own alone. That one calls `next` itself when it has no text in hand.
  FewerThreads on_fewer_threads = {};
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_RUN_OPTIONS_H_
