// The command line as text; see command_line.h.
#include "tools/command_line.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "engine/utf8.h"

namespace octavo::tools {
namespace {

struct CommandLine {
  std::string program = "octavo";
  std::vector<std::string> arguments;
};

CommandLine& Remembered() {
  static CommandLine line;
  return line;
}

// Byte by byte, so that it is read back whatever it holds.
std::string BashWord(std::string_view argument) {
  std::string word = "$'";
  for (const char c : argument) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '\'' || c == '\\') {
      word += fmt::format("\\{}", c);
    } else if (byte < 0x20 || byte >= 0x7F) {
      word += fmt::format("\\x{:02x}", byte);
    } else {
      word += c;
    }
  }
  return word + "'";
}

}  // namespace

void RememberCommandLine(std::string program, std::vector<std::string> arguments) {
  Remembered() = {std::move(program), std::move(arguments)};
}

std::string ShellWord(std::string_view argument) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string_view::npos) return std::string(argument);
  if (EscapeForMessage(argument) != argument) return BashWord(argument);
  std::string word = "'";
  for (const char c : argument) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string CommandWith(std::string_view added, std::string_view removed) {
  std::string text = ShellWord(Remembered().program);
  bool there = false;
  for (const std::string& argument : Remembered().arguments) {
    if (argument == removed) continue;
    there |= argument == added;
    text += ' ' + ShellWord(argument);
  }
  return there ? text : fmt::format("{} {}", text, added);
}

}  // namespace octavo::tools
