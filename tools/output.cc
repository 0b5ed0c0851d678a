// Records on their way out; see output.h.
#include "tools/output.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "engine/error.h"
#include "tools/io.h"
#include "tools/stop.h"

namespace octavo::tools {
namespace {

constexpr size_t kMostWaiting = size_t{4} << 20;

// After a write, records gather for this long or until there are this many bytes.
constexpr std::chrono::milliseconds kPause{5};
constexpr size_t kFullBatch = size_t{64} << 10;

}  // namespace

Output::Output(int fd, std::string name) : fd_(fd), name_(std::move(name)) {
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {  // the system refuses threads: Write itself writes
  }
}

Output::~Output() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Output::Write(std::string_view bytes) {
  if (!thread_.joinable()) return WriteAll(bytes);
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return error_ || waiting_.size() < kMostWaiting; });
  if (error_) std::rethrow_exception(error_);
  const size_t before = waiting_.size(), enough = pausing_ ? kFullBatch : 1;
  waiting_ += bytes;
  if (before < enough && waiting_.size() >= enough) wake_.notify_one();
}

void Output::Flush() {
  const std::lock_guard lock(mutex_);
  flushing_ = !waiting_.empty();
  if (flushing_ && pausing_) wake_.notify_one();
}

void Output::Close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  if (error_) std::rethrow_exception(error_);
}

void Output::Run() {
  std::string batch;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    batch.swap(waiting_);
    flushing_ = false;
    room_.notify_all();
    lock.unlock();
    std::exception_ptr error;
    try {
      WriteAll(batch);
    } catch (...) {
      error = std::current_exception();
    }
    batch.clear();
    lock.lock();
    if (!error) {
      pausing_ = true;
      wake_.wait_for(lock, kPause, [&] { return closing_ || flushing_ || waiting_.size() >= kFullBatch; });
      pausing_ = false;
      continue;
    }
    error_ = error;
    room_.notify_all();
    RequestStop();
    return;
  }
}

void Output::WriteAll(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd wait = {fd_, POLLOUT, 0};  // somebody made it non-blocking
      poll(&wait, 1, -1);
    } else if (errno == EPIPE) {
      throw ClosedPipe();
    } else if (errno != EINTR) {
      throw Error(fmt::format("cannot write to {}: {}", name_, std::strerror(errno)));
    }
  }
}

}  // namespace octavo::tools
