// Files of records that can be resumed; see run_file.h.
#include "tools/run_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <system_error>
#include <utility>

#include "engine/error.h"
#include "engine/hash.h"
#include "engine/utf8.h"
#include "tools/durable.h"
#include "tools/run_record.h"
#include "tools/same_file.h"
#include "tools/stop.h"

namespace octavo::tools {
namespace {

// What a crash of the machine may cost.
constexpr std::chrono::seconds kSyncEvery{5};

constexpr const char* kToBeEmptied = "to_be_emptied";

[[noreturn]] void FailWith(const char* what, const std::string& path) {
  throw Error(fmt::format("{} {}: {}", what, QuotePath(path), std::strerror(errno)));
}

// Calls `use` with all bytes of a file from `begin` on, piece by piece.
void ReadFrom(int fd, uint64_t begin, const std::string& path, const std::function<void(std::string_view)>& use) {
  std::vector<char> buffer(size_t{1} << 20);
  for (auto at = static_cast<off_t>(begin);;) {
    const ssize_t got = pread(fd, buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) FailWith("cannot read", path);
    if (got == 0) return;
    use({buffer.data(), static_cast<size_t>(got)});
    at += got;
  }
}

}  // namespace

RunFile::RunFile(std::string path, RunMode mode) : path_(std::move(path)) {
  Open(mode);
  if (!is_regular_) return;
  if (flock(fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      throw Error(fmt::format("{} is being written by another octavo; wait for it", QuotePath(path_)));
    FailWith("cannot lock", path_);
  }
  if (IdentityOf(fd()) != IdentityOf(path_)) {
    throw Error(fmt::format("{} was replaced or removed just now; try again", QuotePath(path_)));
  }
  if (mode == RunMode::kResume) ReadRecord();
}

void RunFile::Open(RunMode mode) {
  struct stat status;
  const bool exists = stat(path_.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) FailWith("cannot open", path_);
  if (exists && S_ISDIR(status.st_mode))
    throw Error(fmt::format("{} is a directory; expected a file", QuotePath(path_)));
  is_regular_ = !exists || S_ISREG(status.st_mode);
  if (exists && is_regular_ && mode == RunMode::kNew) {
    throw Error(fmt::format("{} exists; use --resume to go on with it, --force to begin anew, or another name",
                            QuotePath(path_)));
  }
  if (!is_regular_ && mode == RunMode::kResume) {
    throw Error(fmt::format("cannot resume {}: it is not a regular file", QuotePath(path_)));
  }
  if (is_regular_ && mode != RunMode::kResume) CheckOldRecord(mode);
  const std::string target = exists ? path_ : FollowLinks(path_);
  const int access = (is_regular_ ? O_RDWR : O_WRONLY) | O_CLOEXEC;
  fd_.value = open(target.c_str(), exists ? access : access | O_CREAT | O_EXCL, 0666);
  if (fd() >= 0 && !exists) fd_.made = target;
  // Another octavo was faster; the lock will tell.
  if (fd() < 0 && errno == EEXIST && mode == RunMode::kResume) fd_.value = open(target.c_str(), access);
  if (fd() < 0) FailWith("cannot open", path_);
}

RunFile::Descriptor::~Descriptor() {
  if (!made.empty()) unlink(made.c_str());
  if (value >= 0) close(value);
}

RunFile::~RunFile() { StopSyncing(); }

// What would be overwritten.
void RunFile::CheckOldRecord(RunMode mode) const {
  struct stat status;
  if (stat(RecordPath().c_str(), &status) != 0) {
    if (errno != ENOENT) FailWith("cannot open", RecordPath());
    return;
  }
  if (mode == RunMode::kForce && S_ISREG(status.st_mode)) return;
  if (!ReadRunRecord(RecordPath())) {
    throw Error(
        fmt::format("{} exists and is not the record of a run; use --force to overwrite it, or another name "
                    "for --output",
                    QuotePath(RecordPath())));
  }
}

void RunFile::ReadRecord() {
  struct stat status;
  if (access(RecordPath().c_str(), F_OK) != 0) {
    // Broken before its record was written, so before its first line; or never begun.
    if (fstat(fd(), &status) == 0 && status.st_size == 0) return;
    throw Error(fmt::format("cannot resume {}: there is no {} beside it", QuotePath(path_), QuotePath(RecordPath())));
  }
  std::optional<FoundRun> found = ReadRunRecord(RecordPath());
  if (!found) {
    throw Error(fmt::format("cannot resume {}: {} is damaged; expected the record of a run", QuotePath(path_),
                            QuotePath(RecordPath())));
  }
  found_ = std::move(found->record);
  found_marks_ = std::move(found->marks);
}

std::optional<uint64_t> RunFile::seed() const {
  return found_ ? std::optional((**found_)["seed"].get<uint64_t>()) : std::nullopt;
}

uint64_t RunFile::Begin(const nlohmann::ordered_json& record) {
  if (!is_regular_) return 0;
  record_ = record;
  if (found_) CompareRunRecords(**found_, record, path_);
  if (found_ && !(*found_)->contains(kToBeEmptied)) {
    Scan(found_marks_.value_or(std::vector<RunMark>()));
    if (!found_marks_ && marks_.last().lines > 0) {
      num_checked_ = marks_.last().lines - 1;
      checked_bytes_ = marks_.last_line_begin();
    }
    fd_.made.clear();
    return marks_.last().lines;
  }
  struct stat status;
  if (fstat(fd(), &status) != 0) FailWith("cannot read", path_);
  if (status.st_size > 0) {
    // Should it break between these steps, --resume knows that what stands in FILE is of an earlier run.
    WriteRecord({}, true);
    if (ftruncate(fd(), 0) != 0) FailWith("cannot empty", path_);
  }
  WriteRecord({});
  if (!fd_.made.empty()) SyncFolderOf(fd_.made);
  fd_.made.clear();
  return 0;
}

void RunFile::WriteRecord(const std::vector<RunMark>& marks, bool to_be_emptied) const {
  nlohmann::ordered_json record = record_;
  if (to_be_emptied) record[kToBeEmptied] = true;
  ReplaceFile(RecordPath(), RunRecordText(record, marks));
}

// Counts and hashes what is there.
void RunFile::Scan(const std::vector<RunMark>& expected) {
  auto next = expected.begin();
  ReadFrom(fd(), 0, path_, [&](std::string_view bytes) {
    while (!bytes.empty()) {
      const bool last = next == expected.end();
      const std::string_view piece = bytes.substr(0, last ? bytes.npos : next->bytes - marks_.now().bytes);
      marks_.Add(piece);
      bytes.remove_prefix(piece.size());
      if (last || marks_.now().bytes < next->bytes) continue;
      const uint64_t first_line = num_checked_ + 1;
      if (marks_.now() != *next) {
        throw Error(fmt::format(
            "cannot resume {}: line {}{} is not what was written there (see {}); expected the file "
            "as it was left; put it back, or begin anew with --force",
            QuotePath(path_), first_line, next->lines > first_line ? fmt::format(" or one up to {}", next->lines) : "",
            QuotePath(RecordPath())));
      }
      num_checked_ = next->lines;
      checked_bytes_ = next->bytes;
      ++next;
    }
  });
}

bool RunFile::TakeLine(std::string_view line) {
  if (checked_bytes_ + line.size() > marks_.last().bytes) return false;
  std::string found(line.size(), '\0');
  for (size_t at = 0; at < found.size();) {
    const ssize_t got = pread(fd(), found.data() + at, found.size() - at, static_cast<off_t>(checked_bytes_ + at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) FailWith("cannot read", path_);
    if (got == 0) return false;
    at += static_cast<size_t>(got);
  }
  checked_bytes_ += line.size();
  ++num_checked_;
  return found == line;
}

void RunFile::GoOn() {
  if (!is_regular_) return;
  const auto end = static_cast<off_t>(marks_.last().bytes);
  if (ftruncate(fd(), end) != 0 || lseek(fd(), end, SEEK_SET) != end) FailWith("cannot shorten", path_);
  marks_.DropUnfinished();
  try {
    thread_ = std::thread([this] { SyncRegularly(); });
  } catch (const std::system_error&) {
    // No thread to be had: Wrote syncs.
  }
}

void RunFile::Wrote(std::string_view bytes) {
  if (!is_regular_) return;
  const auto now = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  marks_.Add(bytes);
  if (!std::exchange(unsynced_, true)) {
    unsynced_since_ = now;
    wake_.notify_one();
  }
  if (!thread_.joinable() && now - unsynced_since_ >= kSyncEvery) Sync(lock);
}

// Data first: what the record says of FILE is never more than what is safe. Writing goes on meanwhile.
void RunFile::Sync(std::unique_lock<std::mutex>& lock) {
  const std::vector<RunMark> marks = marks_.All();
  unsynced_ = false;
  lock.unlock();
  SyncFile(fd(), path_);
  WriteRecord(marks);
  lock.lock();
}

void RunFile::SyncRegularly() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return closing_ || unsynced_; });
    if (wake_.wait_for(lock, kSyncEvery, [&] { return closing_; })) return;
    try {
      Sync(lock);
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      error_ = std::current_exception();
      RequestAbandon();
      return;
    }
  }
}

void RunFile::StopSyncing() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void RunFile::Finish() {
  StopSyncing();
  std::unique_lock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  if (unsynced_) Sync(lock);
}

uint64_t HashFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(size_t{1} << 20);
  Fnv1a hash;
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    hash.Add({buffer.data(), static_cast<size_t>(file.gcount())});
  }
  if (file.bad() || !file.eof()) FailWith("cannot read", path);
  return hash.value();
}

}  // namespace octavo::tools
