// Shared parts of the command line; see command.h.
#include "tools/command.h"

#include <charconv>
#include <cmath>

#include "engine/error.h"
#include "engine/threads.h"
#include "engine/utf8.h"

namespace octavo::tools {
namespace {

// Runs a parser inside CLI11, whose own error type carries the flag's name.
template <typename Parse>
CLI::Option* AddParsed(CLI::App& command, const std::string& name, const std::string& help,
                       const std::string& default_text, const Parse& parse) {
  return command
      .add_option_function<std::string>(
          name,
          [name, parse](const std::string& text) {
            try {
              parse(text);
            } catch (const UsageError& error) {
              throw CLI::ValidationError(name, error.what());
            }
          },
          help)
      ->default_str(default_text)
      ->take_last();
}

}  // namespace

uint64_t ParseUnsigned(const std::string& text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw UsageError(fmt::format("{} is not a whole number from {} to {}", Quote(text), least, most));
  }
  return value;
}

double ParseDouble(const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw UsageError(fmt::format("{} is not a finite decimal number (such as 0.8)", Quote(text)));
  }
  return value;
}

CLI::Option* AddUnsigned(CLI::App& command, const std::string& name, uint64_t& value, const std::string& help,
                         uint64_t least, uint64_t most) {
  return AddParsed(command, name, help, std::to_string(value),
                   [&value, least, most](const std::string& text) { value = ParseUnsigned(text, least, most); })
      ->type_name("N");
}

CLI::Option* AddDouble(CLI::App& command, const std::string& name, double& value, const std::string& help) {
  return AddParsed(command, name, help, fmt::format("{}", value),
                   [&value](const std::string& text) { value = ParseDouble(text); })
      ->type_name("X");
}

CLI::Option* AddTexts(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                      const std::string& help) {
  return command.add_option(name, values, help)->type_name("TEXT")->expected(1)->allow_extra_args(false)->take_all();
}

void AddCommonFlags(CLI::App& command, CommonFlags& flags) {
  command
      .add_option("--model", flags.model, "built-in model, .safetensors file, or directory in the Hugging Face layout")
      ->type_name("NAME|FILE|DIR")
      ->capture_default_str();
  AddUnsigned(command, "--threads", flags.threads, "0: as many as this process may use", 0, 1u << 20);
  command.add_flag("--quiet", flags.quiet, "only errors on stderr");
}

int ThreadsFrom(const CommonFlags& flags) {
  try {
    return ChooseThreads(static_cast<int>(flags.threads));
  } catch (const Error& error) {
    throw UsageError(fmt::format("--threads: {}", error.what()));
  }
}

}  // namespace octavo::tools
