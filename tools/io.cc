// Input lines and checked output; see io.h.
#include "tools/io.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "engine/error.h"
#include "engine/utf8.h"

namespace octavo::tools {

Input::Input(const std::string& path)
    : name_(path == "-" ? "standard input" : path), file_(stdin, [](FILE*) { return 0; }) {
  if (path == "-") return;
  file_ = {std::fopen(path.c_str(), "rb"), std::fclose};
  if (!file_) throw Error(fmt::format("cannot open {}: {}", Quote(path), std::strerror(errno)));
  struct stat status;
  if (fstat(fileno(file_.get()), &status) == 0 && S_ISDIR(status.st_mode)) {
    throw Error(fmt::format("{} is a directory; expected a file", Quote(path)));
  }
}

bool Input::Fill() {
  constexpr size_t kChunk = 1 << 16;
  buffer_.erase(0, at_);
  at_ = 0;
  const size_t old = buffer_.size();
  buffer_.resize(old + kChunk);
  const size_t got = std::fread(buffer_.data() + old, 1, kChunk, file_.get());
  buffer_.resize(old + got);
  if (got == 0 && std::ferror(file_.get()))
    throw Error(fmt::format("cannot read {}: {}", Quote(name_), std::strerror(errno)));
  if (first_ && buffer_.size() >= 3) {
    first_ = false;
    if (buffer_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }
  return got > 0;
}

std::optional<std::string> Input::NextLine() {
  size_t searched = at_;
  for (;;) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(at_, end - at_);
      at_ = end + 1;
      if (line.ends_with('\r')) line.pop_back();
      return line;
    }
    searched = buffer_.size() - at_;  // Fill() moves what is left to the front
    if (!Fill()) break;
    searched = std::max(searched, at_);
  }
  if (at_ == buffer_.size()) return std::nullopt;
  std::string line = buffer_.substr(at_);
  at_ = buffer_.size();
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

std::string Input::ReadAll() {
  while (Fill()) {
  }
  return buffer_.substr(at_);
}

void WriteOut(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() || std::fflush(stdout) != 0) {
    throw Error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
}

}  // namespace octavo::tools
