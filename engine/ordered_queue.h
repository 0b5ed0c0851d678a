// Requests in, results out in the same order, between a source, workers on several threads and a sink. Not installed.
#ifndef OCTAVO_ENGINE_ORDERED_QUEUE_H_
#define OCTAVO_ENGINE_ORDERED_QUEUE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/float_control.h"
#include "engine/run_options.h"

namespace octavo {

// A thread of its own waits for input, so that what is there is worked on while a pipe is silent. Finished results wait
// for those before them, and no request is read that is more than `window` ahead of the oldest unfinished one, so
// memory is bounded. Where the system refuses that thread, one worker alone reads a request whenever it holds none.
template <typename Request, typename Result>
class OrderedQueue {
 public:
  using Next = std::function<std::optional<Request>()>;
  using Emit = std::function<void(const Request&, Result&&)>;

  struct Item {
    uint64_t number;
    Request request;
  };

  // All arguments must outlive the queue. `num_workers` share what there is fairly.
  OrderedQueue(const Next& next, const Emit& emit, const RunOptions& options, size_t num_workers, size_t window)
      : next_(next), emit_(emit), options_(options), num_workers_(num_workers), window_(window) {
    try {
      reader_ = std::thread([this] { ReadAll(); });
    } catch (const std::system_error&) {
      const DefaultFloatControl control;
      if (options.on_fewer_threads) options.on_fewer_threads(1, "no thread could be started beside the first");
    }
  }

  ~OrderedQueue() { EndReader(); }

  // Whether there may be more than one worker.
  bool has_reader() const { return reader_.joinable(); }

  // The next request for a worker that is busy with `held` of them; nullopt when there is none for it now, or, for who holds none and waits,
  // none any more.
  std::optional<Item> Take(size_t held) {
    std::unique_lock lock(mutex_);
    if (held == 0) WaitForRequest(lock);
    if (failed_ || Stopped() || ready_.empty()) return std::nullopt;
    // As many for each worker, so that a few requests do not all go to the first who asks.
    const size_t workers = num_workers_ - num_dropped_;
    const size_t share = (static_cast<size_t>(taken_ - returned_) + ready_.size() + workers - 1) / workers;
    if (held >= std::max<size_t>(share, 1)) return std::nullopt;
    Item item{taken_++, std::move(ready_.front())};
    ready_.pop_front();
    return item;
  }

  // Whether there are requests for more workers.
  bool has_ready() {
    const std::lock_guard lock(mutex_);
    return !failed_ && !Stopped() && !ready_.empty();
  }

  // How many workers there are, with those that are dropped.
  void SetWorkers(size_t num_workers) {
    const std::lock_guard lock(mutex_);
    num_workers_ = num_workers;
  }

  // One worker less, which holds nothing.
  void DropWorker() {
    const std::lock_guard lock(mutex_);
    ++num_dropped_;
  }

  void Put(uint64_t number, Request&& request, Result&& result) {
    std::unique_lock lock(mutex_);
    ++returned_;
    finished_.emplace(number, Done{std::move(request), std::move(result)});
    if (emitting_) return;
    emitting_ = true;
    // Emits without the lock, so that others go on taking and putting while the output is slow.
    for (auto first = finished_.begin(); first != finished_.end() && first->first == emitted_;
         first = finished_.begin()) {
      Done done = std::move(first->second);
      finished_.erase(first);
      const bool wanted = !failed_;
      lock.unlock();
      std::exception_ptr error = wanted ? EmitOne(done) : nullptr;
      lock.lock();
      if (error) End(std::move(error));
      ++emitted_;
      if (has_room() || Stopped()) room_.notify_one();
      if (Stopped()) changed_.notify_all();  // whoever waits for a request that will not come
    }
    emitting_ = false;
  }

  // Ends the run for all workers when one of them cannot go on.
  void Abort(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    End(std::move(error));
  }

  // Whether the run has failed, so that nothing more will be handed over.
  bool failed() const { return failed_; }

  // When all workers are done: throws what next, emit or a worker threw, the first of it.
  void Finish() {
    EndReader();
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  struct Done {
    Request request;
    Result result;
  };

  bool Stopped() const { return options_.stop && options_.stop->load(std::memory_order_relaxed); }

  std::exception_ptr EmitOne(Done& done) const {
    const UndoneFloatControl control;
    try {
      emit_(done.request, std::move(done.result));
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  // Until there is a request, or none will come. A stop is looked for now and then: who sets it need not know of this
  // queue.
  void WaitForRequest(std::unique_lock<std::mutex>& lock) {
    constexpr std::chrono::milliseconds kLookForStop{50};
    const auto over = [&] { return ended_ || Stopped() || !ready_.empty(); };
    while (!over()) {
      if (!has_reader()) {
        ReadOne(lock);
      } else if (options_.stop) {
        changed_.wait_for(lock, kLookForStop);
      } else {
        changed_.wait(lock);
      }
    }
  }

  // Reads without the lock.
  void ReadOne(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    std::optional<Request> request;
    std::exception_ptr error;
    try {
      const UndoneFloatControl control;
      request = next_();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error || !request) return End(std::move(error));
    try {
      ready_.push_back(std::move(*request));
    } catch (...) {
      return End(std::current_exception());
    }
    changed_.notify_all();
  }

  // The reader's thread: until the input ends or something fails.
  void ReadAll() {
    const DefaultFloatControl control;  // a thread begins with that of the one that started it
    std::unique_lock lock(mutex_);
    while (!ended_ && !Stopped()) {
      ReadOne(lock);
      if (num_ahead() < window_) continue;
      // Goes on when a quarter of the window is free, not for each request: a thread woken for every text cost 5% of the time of `tiny`.
      room_.wait(lock, [&] { return ended_ || Stopped() || has_room(); });
    }
    reader_done_ = true;
    changed_.notify_all();
  }

  // The reader may be waiting for input that nobody wants any more.
  void EndReader() {
    {
      const std::lock_guard lock(mutex_);
      End(nullptr);
    }
    if (!reader_.joinable()) return;
    if (!reader_done_ && options_.wake_next) {
      const DefaultFloatControl control;
      options_.wake_next();
    }
    reader_.join();
  }

  // No more requests; with an error, no more output either.
  void End(std::exception_ptr error) {
    ended_ = true;
    if (error && !error_) error_ = error;
    failed_ = error_ != nullptr;
    changed_.notify_all();
    room_.notify_one();
  }

  // Requests read of which the results are not out.
  uint64_t num_ahead() const { return taken_ + ready_.size() - emitted_; }
  bool has_room() const { return num_ahead() + std::max<uint64_t>(window_ / 4, 1) <= window_; }

  const Next& next_;
  const Emit& emit_;
  const RunOptions& options_;
  size_t num_workers_, num_dropped_ = 0;
  const size_t window_;
  std::mutex mutex_;
  std::condition_variable changed_, room_;  // for the workers; for the reader
  std::deque<Request> ready_;
  uint64_t taken_ = 0, returned_ = 0, emitted_ = 0;
  bool ended_ = false, emitting_ = false;
  std::atomic<bool> failed_ = false, reader_done_ = false;
  std::map<uint64_t, Done> finished_;
  std::exception_ptr error_;
  std::thread reader_;  // last: it uses all of the above
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_ORDERED_QUEUE_H_
