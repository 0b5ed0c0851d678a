// Files of records that can be resumed; see run_file.h.
#include "tools/run_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "engine/error.h"
#include "engine/hash.h"
#include "engine/json.h"
#include "engine/utf8.h"
#include "tools/io.h"

namespace octavo::tools {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void FailWith(const char* what, const std::string& path) {
  throw Error(fmt::format("{} {}: {}", what, Quote(path), std::strerror(errno)));
}

// Throws for the first difference, named as `name`.
void Compare(const Json& found, const Json& wanted, const std::string& name, const std::string& path) {
  if (found.is_object() && wanted.is_object()) {
    for (const auto& [key, value] : wanted.items()) {
      Compare(found.contains(key) ? found[key] : Json(), value, name.empty() ? key : name + "." + key, path);
    }
    return;
  }
  if (found == wanted) return;
  throw Error(fmt::format("cannot resume {}: its {} is {}, that of this run {}; expected the same (see {})",
                          Quote(path), name, found.dump(), wanted.dump(), Quote(path + ".run")));
}

}  // namespace

RunFile::RunFile(std::string path, RunMode mode) : path_(std::move(path)) {
  struct stat status;
  const bool exists = stat(path_.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) FailWith("cannot open", path_);
  if (exists && S_ISDIR(status.st_mode)) throw Error(fmt::format("{} is a directory; expected a file", Quote(path_)));
  is_regular_ = !exists || S_ISREG(status.st_mode);
  if (exists && is_regular_ && mode == RunMode::kNew) {
    throw Error(
        fmt::format("{} exists; use --resume to go on with it, --force to begin anew, or another name", Quote(path_)));
  }
  if (!is_regular_ && mode == RunMode::kResume) {
    throw Error(fmt::format("cannot resume {}: it is not a regular file", Quote(path_)));
  }
  const int create = mode == RunMode::kNew && is_regular_ ? O_CREAT | O_EXCL : O_CREAT;
  fd_.value = open(path_.c_str(), (is_regular_ ? O_RDWR : O_WRONLY) | O_CLOEXEC | create, 0666);
  if (fd() < 0) FailWith("cannot open", path_);
  if (!is_regular_) return;
  if (flock(fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      throw Error(fmt::format("{} is being written by another octavo; wait for it", Quote(path_)));
    FailWith("cannot lock", path_);
  }
  if (mode == RunMode::kForce && ftruncate(fd(), 0) != 0) FailWith("cannot empty", path_);
  if (mode == RunMode::kResume) ReadRecord();
}

RunFile::Descriptor::~Descriptor() {
  if (value >= 0) close(value);
}

void RunFile::ReadRecord() {
  struct stat status;
  if (access(RecordPath().c_str(), F_OK) != 0) {
    // Broken before its record was written, so before its first line; or never begun.
    if (fstat(fd(), &status) == 0 && status.st_size == 0) return;
    throw Error(fmt::format("cannot resume {}: there is no {} beside it", Quote(path_), Quote(RecordPath())));
  }
  found_ = Json::parse(Input(RecordPath()).ReadAll(), nullptr, false);
  if (!found_->is_object() || !found_->contains("seed") || !(*found_)["seed"].is_number_unsigned()) {
    throw Error(fmt::format("cannot resume {}: {} is damaged; expected the record of a run", Quote(path_),
                            Quote(RecordPath())));
  }
}

std::optional<uint64_t> RunFile::seed() const {
  return found_ ? std::optional((*found_)["seed"].get<uint64_t>()) : std::nullopt;
}

uint64_t RunFile::Begin(const Json& record) {
  if (!is_regular_) return 0;
  if (!found_) {
    WriteRecord(record);
    return 0;
  }
  Compare(*found_, record, "", path_);
  return CutToLines();
}

// Under another name first, so that FILE.run is whole or not there.
void RunFile::WriteRecord(const Json& record) const {
  const std::string name = RecordPath() + ".new";
  WriteFile(name, record.dump(2) + "\n", true);
  if (std::rename(name.c_str(), RecordPath().c_str()) != 0) FailWith("cannot write", RecordPath());
}

uint64_t RunFile::CutToLines() {
  std::vector<char> buffer(size_t{1} << 20);
  uint64_t lines = 0;
  off_t at = 0, end = 0;
  for (ssize_t got; (got = pread(fd(), buffer.data(), buffer.size(), at)) != 0; at += got) {
    if (got < 0 && errno == EINTR) {
      got = 0;
      continue;
    }
    if (got < 0) FailWith("cannot read", path_);
    const std::string_view bytes(buffer.data(), static_cast<size_t>(got));
    lines += static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
    if (const size_t last = bytes.rfind('\n'); last != bytes.npos) end = at + static_cast<off_t>(last) + 1;
  }
  if (ftruncate(fd(), end) != 0 || lseek(fd(), end, SEEK_SET) != end) FailWith("cannot shorten", path_);
  return lines;
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
