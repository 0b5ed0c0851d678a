// Writing texts: checks, one completion, and many through groups of lanes; see generate.h.
#include "engine/generate.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/fail.h"
#include "engine/group.h"
#include "engine/parallel.h"
#include "engine/utf8.h"

namespace octavo {
namespace {

// Panels of sequences that one group steps together: each weight that is broadcast then feeds four multiply-adds.
constexpr size_t kPanelsPerGroup = 4;

// Requests in, completions out in the same order, between groups on several threads. A thread of its own waits for input, so that what is
// there is worked on while a pipe is silent. Finished completions wait for those before them, and no request is read that is more than
// `window` ahead of the oldest unfinished one, so memory is bounded.
class OrderedQueue {
 public:
  using Next = std::function<std::optional<GenerateRequest>()>;
  using Emit = std::function<void(const GenerateRequest&, Completion&&)>;

  OrderedQueue(const Next& next, const Emit& emit, size_t window)
      : next_(next), emit_(emit), window_(window), reader_([this] { ReadAll(); }) {}
  ~OrderedQueue() { reader_.join(); }

  // The next request; nullopt when there is none yet, or, for who waits, none any more.
  std::optional<Group::Queue::Item> Take(bool wait) {
    std::unique_lock lock(mutex_);
    if (wait) changed_.wait(lock, [&] { return ended_ || !ready_.empty(); });
    if (failed_ || ready_.empty()) return std::nullopt;
    Group::Queue::Item item{taken_++, std::move(ready_.front())};
    ready_.pop_front();
    return item;
  }

  void Put(uint64_t number, GenerateRequest&& request, Completion&& completion) {
    std::unique_lock lock(mutex_);
    finished_.emplace(number, Done{std::move(request), std::move(completion)});
    if (emitting_) return;
    emitting_ = true;
    // Emits without the lock, so that others go on taking and putting while the output is slow.
    for (auto first = finished_.begin(); first != finished_.end() && first->first == emitted_;
         first = finished_.begin()) {
      Done done = std::move(first->second);
      finished_.erase(first);
      lock.unlock();
      if (!failed_) EmitOne(done);
      lock.lock();
      ++emitted_;
      changed_.notify_all();
    }
    emitting_ = false;
  }

  // Ends the run for all groups when one of them cannot go on.
  void Abort(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    End(std::move(error));
  }

  // Throws what next, emit or a group threw.
  void Rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  struct Done {
    GenerateRequest request;
    Completion completion;
  };

  void EmitOne(Done& done) {
    try {
      emit_(done.request, std::move(done.completion));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      End(std::current_exception());
    }
  }

  // The reader's thread: until the input ends or something fails.
  void ReadAll() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      lock.unlock();
      std::optional<GenerateRequest> request;
      std::exception_ptr error;
      try {
        request = next_();
        if (request && request->error.empty()) CheckOptions(request->options);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error || !request) {
        End(std::move(error));
        break;
      }
      ready_.push_back(std::move(*request));
      changed_.notify_all();
      changed_.wait(lock, [&] { return ended_ || taken_ + ready_.size() < emitted_ + window_; });
    }
  }

  // No more requests; with an error, no more output either.
  void End(std::exception_ptr error) {
    ended_ = true;
    if (error && !error_) error_ = error;
    failed_ = error_ != nullptr;
    changed_.notify_all();
  }

  const Next& next_;
  const Emit& emit_;
  const size_t window_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<GenerateRequest> ready_;
  uint64_t taken_ = 0, emitted_ = 0;
  bool ended_ = false, emitting_ = false;
  std::atomic<bool> failed_ = false;
  std::map<uint64_t, Done> finished_;
  std::exception_ptr error_;
  std::thread reader_;  // last: it uses all of the above
};

}  // namespace

void CheckOptions(const GenerateOptions& options) {
  CheckSampling(options.sampling);
  for (const std::string& stop : options.stops) {
    if (stop.empty()) Fail("a stop string is empty; expected at least one character");
    try {
      DecodeUtf8(stop);
    } catch (const Error& error) {
      Fail("stop string {}: {}", Quote(stop), error.what());
    }
  }
}

Completion Generate(const Model& model, const GenerateRequest& request,
                    const std::function<void(std::string_view)>& on_text) {
  if (request.error.empty()) CheckOptions(request.options);  // an error may be about the options
  Completion result;
  bool given = false;
  const Group::Queue queue{
      [&](bool) -> std::optional<Group::Queue::Item> {
        if (std::exchange(given, true)) return std::nullopt;
        return Group::Queue::Item{0, request};
      },
      [&](uint64_t, GenerateRequest&&, Completion&& completion) { result = std::move(completion); }};
  Group(model, 1, queue, on_text ? &on_text : nullptr).Run();
  return result;
}

void GenerateAll(const Model& model, int num_threads, const std::function<std::optional<GenerateRequest>()>& next,
                 const std::function<void(const GenerateRequest&, Completion&&)>& emit) {
  const size_t lanes = static_cast<size_t>(num_threads) * kPanelsPerGroup * kPanelRows;
  // Completions of different lengths finish out of order: a few groups' worth may wait.
  OrderedQueue queue(next, emit, 8 * lanes);
  const Group::Queue view{[&](bool wait) { return queue.Take(wait); },
                          [&](uint64_t number, GenerateRequest&& request, Completion&& completion) {
                            queue.Put(number, std::move(request), std::move(completion));
                          }};
  RunOnThreads(num_threads, [&](size_t) {
    try {
      Group(model, kPanelsPerGroup, view, nullptr).Run();
    } catch (...) {
      queue.Abort(std::current_exception());
    }
  });
  queue.Rethrow();
}

}  // namespace octavo
