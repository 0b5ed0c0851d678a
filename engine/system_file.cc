// Reading and splitting what the system says; see system_file.h.
#include "engine/system_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "kernels/strict_math.h"

namespace octavo {

std::string ReadSystemFile(const std::string& path) {
  struct Descriptor {
    ~Descriptor() {
      if (value >= 0) close(value);
    }
    int value;
  };
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::string text;
  char buffer[4096];
  while (file.value >= 0) {
    const ssize_t got = read(file.value, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::vector<std::string> SplitWords(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  std::vector<std::string> words;
  for (size_t begin; (begin = text.find_first_not_of(kSpace)) != text.npos;) {
    text.remove_prefix(begin);
    words.emplace_back(text.substr(0, text.find_first_of(kSpace)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

}  // namespace octavo
