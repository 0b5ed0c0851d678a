// What the subcommands share: common flags, number parsing without locale, and the exit-2 error.
// Each subcommand is one file that adds itself to the command line and sets what main() runs.
#ifndef OCTAVO_TOOLS_COMMAND_H_
#define OCTAVO_TOOLS_COMMAND_H_

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace octavo::tools {

// A wrong command line that only shows once a model is loaded or values are combined: exit 2. (octavo::Error is exit 1.)
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct CommonFlags {
  std::string model = "tiny";
  uint64_t threads = 0;
  bool quiet = false;
};

// What main() runs; returns the exit code.
using Action = std::function<int()>;

void AddCommonFlags(CLI::App& command, CommonFlags& flags);
void AddGenerateCommand(CLI::App& app, Action& action);
void AddScoreCommand(CLI::App& app, Action& action);
void AddInfoCommand(CLI::App& app, Action& action);

// Number of threads, or UsageError.
int ThreadsFrom(const CommonFlags& flags);

// Parse the whole of `text`; throw UsageError that says what was expected.
uint64_t ParseUnsigned(const std::string& text, uint64_t least = 0,
                       uint64_t most = std::numeric_limits<uint64_t>::max());
double ParseDouble(const std::string& text);

// Number flags. The value keeps its default where the flag is absent.
CLI::Option* AddUnsigned(CLI::App& command, const std::string& name, uint64_t& value, const std::string& help,
                         uint64_t least = 0, uint64_t most = std::numeric_limits<uint64_t>::max());
CLI::Option* AddDouble(CLI::App& command, const std::string& name, double& value, const std::string& help);

// A repeatable text flag that takes each value as it is, also an empty one or one that begins with a dash.
CLI::Option* AddTexts(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                      const std::string& help);

// One line on stderr.
template <typename... Args>
void Complain(fmt::format_string<Args...> format, Args&&... args) {
  fmt::print(stderr, "octavo: {}\n", fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_COMMAND_H_
