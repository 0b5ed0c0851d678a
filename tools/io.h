// Lines in, bytes out: inputs that may be files or pipes, and outputs whose failures are noticed.
#ifndef OCTAVO_TOOLS_IO_H_
#define OCTAVO_TOOLS_IO_H_

#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::tools {

// A file, or standard input for "-", read once from front to end. A leading byte order mark is dropped.
class Input {
 public:
  // Throws Error when the file cannot be opened.
  explicit Input(const std::string& path);

  // The next line without its line end (LF or CRLF); nullopt at the end. An unfinished last line counts. Throws Error on read errors.
  std::optional<std::string> NextLine();

  // All that is left.
  std::string ReadAll();

  const std::string& name() const { return name_; }  // for messages: "prompts.txt" or "standard input"

 private:
  bool Fill();

  std::string name_;
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
  std::string buffer_;
  size_t at_ = 0;
  bool first_ = true;
};

// Writes to standard output and flushes. Throws Error that says why when that fails (a full disk).
void WriteOut(std::string_view bytes);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_IO_H_
