// Input lines and checked output; see io.h.
#include "tools/io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/utf8.h"
#include "tools/durable.h"
#include "tools/stop.h"
#include "tools/writing.h"

namespace octavo::tools {
namespace {

// More is no line that anybody wrote, but a file of another kind or a device.
constexpr size_t kLongestLine = size_t{1} << 26;

}  // namespace

Input::Input(const std::string& path)
    : name_(path == "-" ? "standard input" : EscapeControls(path)), file_(stdin, [](FILE*) { return 0; }) {
  if (path != "-") {
    file_ = {std::fopen(path.c_str(), "rb"), std::fclose};
    if (!file_) throw Error(fmt::format("cannot open '{}': {}", name_, std::strerror(errno)));
  }
  struct stat status;
  if (fstat(fileno(file_.get()), &status) != 0) return;
  if (S_ISDIR(status.st_mode)) throw Error(fmt::format("'{}' is a directory; expected a file", name_));
  if (S_ISREG(status.st_mode)) size_ = static_cast<uint64_t>(status.st_size);
}

// Appends what there is to the buffer. read() and not fread(), which would wait for more than one line of a pipe.
bool Input::Fill() {
  constexpr size_t kChunk = 1 << 16;
  buffer_.erase(0, at_);
  at_ = 0;
  const size_t old = buffer_.size();
  buffer_.resize(old + kChunk);
  ssize_t got = 0;
  do {
    const bool goes_on = WaitToRead(fileno(file_.get()));
    got = goes_on ? read(fileno(file_.get()), buffer_.data() + old, kChunk) : 0;
    if (!goes_on) buffer_.clear();  // a line that was not read whole is none
  } while (got < 0 && (errno == EINTR || errno == EAGAIN));
  if (got < 0) throw Error(fmt::format("cannot read '{}': {}", name_, std::strerror(errno)));
  buffer_.resize(std::min(buffer_.size(), old) + static_cast<size_t>(got));
  num_read_ += static_cast<uint64_t>(got);
  return got > 0;
}

std::optional<double> Input::ShareTaken() const {
  if (!size_ || *size_ == 0) return std::nullopt;
  return static_cast<double>(num_read_ - (buffer_.size() - at_)) / static_cast<double>(*size_);
}

void Input::DropByteOrderMark() {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (std::exchange(started_, true)) return;
  while (buffer_.size() < kMark.size() && kMark.starts_with(buffer_) && Fill()) {
  }
  if (buffer_.starts_with(kMark)) at_ = kMark.size();
}

std::optional<std::string> Input::NextLine() {
  DropByteOrderMark();
  size_t end, searched = at_;
  while ((end = buffer_.find('\n', searched)) == std::string::npos) {
    searched = buffer_.size() - at_;  // Fill() moves what is left to the front
    if (searched > kLongestLine) {
      throw Error(fmt::format("'{}' has a line of more than {} bytes; expected a text or a JSON object a line", name_,
                              kLongestLine));
    }
    if (Fill()) continue;
    if (buffer_.empty()) return std::nullopt;
    return std::exchange(buffer_, {});
  }
  std::string line = buffer_.substr(at_, end - at_);
  at_ = end + 1;
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

std::string Input::ReadAll() {
  DropByteOrderMark();
  while (Fill()) {
  }
  return std::exchange(buffer_, {});
}

bool IsJsonLines(std::string_view format, std::string_view path) {
  return format.empty() ? path.ends_with(".jsonl") : format == "jsonl";
}

bool IsBlank(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

void WriteOut(std::string_view bytes) {
  constexpr const char* kName = "standard output";
  if (isatty(STDOUT_FILENO)) return WriteAll(STDOUT_FILENO, EscapeForTerminal(bytes), kName);
  WriteAll(STDOUT_FILENO, bytes, kName);
}

void RefuseToOverwrite(const std::string& path, bool force) {
  struct stat status;
  if (force || stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  throw Error(fmt::format("{} exists; use --force to overwrite it, or another name", QuotePath(path)));
}

void WriteFile(const std::string& path, std::string_view bytes, bool force) {
  RefuseToOverwrite(path, force);
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return WriteNewFile(FollowLinks(path), bytes);
  if (S_ISREG(status.st_mode)) return ReplaceFile(path, bytes);
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const int error = fd < 0 ? errno : WriteFully(fd, bytes);
  const bool closed = fd < 0 || close(fd) == 0;
  if (error == 0 && closed) return;
  throw Error(fmt::format("cannot {} {}: {}", fd < 0 ? "open" : "write to", QuotePath(path),
                          std::strerror(error != 0 ? error : errno)));
}

std::string JsonLine(const nlohmann::ordered_json& record) {
  const std::string text = record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string line;
  line.reserve(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.starts_with("\u0085")) {
      line += "\\u0085";
      at += 2;
    } else if (rest.starts_with("\u2028") || rest.starts_with("\u2029")) {
      line += rest.starts_with("\u2028") ? "\\u2028" : "\\u2029";
      at += 3;
    } else {
      line += text[at++];
    }
  }
  return line + '\n';
}

}  // namespace octavo::tools
