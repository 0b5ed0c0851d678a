// Records on their way out; see output.h.
#include "tools/output.h"

#include <unistd.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "engine/utf8.h"
#include "tools/stop.h"
#include "tools/writing.h"

namespace octavo::tools {
namespace {

constexpr size_t kMostWaiting = size_t{4} << 20;

// After a write, records gather for this long or until there are this many bytes.
constexpr std::chrono::milliseconds kPause{5};
constexpr size_t kFullBatch = size_t{64} << 10;

}  // namespace

Output::Output(int fd, std::string name, std::function<void(std::string_view)> wrote)
    : fd_(fd), name_(std::move(name)), to_terminal_(isatty(fd)), wrote_(std::move(wrote)) {
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
  if (to_terminal_) return WriteEscaped(EscapeForTerminal(bytes));
  WriteEscaped(bytes);
}

void Output::WriteEscaped(std::string_view bytes) {
  if (!thread_.joinable()) return WriteNow(bytes);
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return error_ || waiting_.size() < kMostWaiting; });
  if (error_) std::rethrow_exception(error_);
  const size_t before = waiting_.size(), enough = pausing_ ? kFullBatch : 1;
  waiting_ += bytes;
  if (before < enough && waiting_.size() >= enough) wake_.notify_one();
}

void Output::WriteNow(std::string_view bytes) const {
  WriteAll(fd_, bytes, name_);
  if (wrote_) wrote_(bytes);
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
      WriteNow(batch);
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
    RequestAbandon();  // nothing more can be handed over
    return;
  }
}

}  // namespace octavo::tools
