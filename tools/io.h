// Lines in, bytes out: inputs that may be files or pipes, and outputs whose failures are noticed.
#ifndef OCTAVO_TOOLS_IO_H_
#define OCTAVO_TOOLS_IO_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::tools {

// A file, or standard input for "-", read once from front to end. A leading byte order mark is dropped. It ends early when a stop is asked for
// (stop.h), also while it waits. Throws Error on read errors.
class Input {
 public:
  // Throws Error when the file cannot be opened.
  explicit Input(const std::string& path);

  // The next line without its line end (LF or CRLF), as soon as it is there; nullopt at the end. An unfinished last line counts.
  // Throws Error when it has more than 64 MiB.
  std::optional<std::string> NextLine();

  // All that is left.
  std::string ReadAll();

  // How much of a regular file has been handed out, 0 to 1; nullopt for others.
  std::optional<double> ShareTaken() const;

  // Whether the same bytes can be read again.
  bool is_regular() const { return size_.has_value(); }

  const std::string& name() const { return name_; }  // for messages: "prompts.txt" or "standard input"

 private:
  bool Fill();
  void DropByteOrderMark();

  std::string name_;
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
  std::optional<uint64_t> size_;  // of a regular file
  uint64_t num_read_ = 0;
  std::string buffer_;
  size_t at_ = 0;
  bool started_ = false;
};

// Whether an input holds JSON lines: as `format` says ("lines" or "jsonl"), or, where that is empty, the name's end.
bool IsJsonLines(std::string_view format, std::string_view path);

// Nothing but spaces and tabs.
bool IsBlank(std::string_view line);

// Writes to standard output; where that is a terminal, controls are escaped (see EscapeForTerminal). Throws ClosedPipe (writing.h), or Error that says why (a full disk).
void WriteOut(std::string_view bytes);

// Throws Error when there is a regular file at `path`, unless `force` says that it may be overwritten.
void RefuseToOverwrite(const std::string& path, bool force);

// Writes a whole file, to the disk. One that exists is only overwritten with `force`, and in one step, once the new one is whole; something else
// than a regular file (a device, a named pipe) is written to. Throws Error.
void WriteFile(const std::string& path, std::string_view bytes, bool force);

// One line, also for readers that take U+0085, U+2028 or U+2029 for the end of one: those are escaped.
// Bytes that are not UTF-8, such as those of a file's name, become U+FFFD.
std::string JsonLine(const nlohmann::ordered_json& record);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_IO_H_
