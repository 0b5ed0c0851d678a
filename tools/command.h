// What the subcommands share: flags and their parsing without locale, the exit-2 error, and messages.
// Each subcommand is one file that adds itself to the command line and sets what main() runs.
#ifndef OCTAVO_TOOLS_COMMAND_H_
#define OCTAVO_TOOLS_COMMAND_H_

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/run_options.h"

namespace octavo::tools {

// A wrong command line: exit 2. (octavo::Error is exit 1.) The message is one line.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct CommonFlags {
  std::string model = "tiny", target;
  uint64_t threads = 0;
  bool quiet = false;
};

// What main() runs; returns the exit code.
using Action = std::function<int()>;

void AddGenerateCommand(CLI::App& app, Action& action);
void AddScoreCommand(CLI::App& app, Action& action);
void AddAttendCommand(CLI::App& app, Action& action);
void AddInfoCommand(CLI::App& app, Action& action);
void AddCheckCommand(CLI::App& app, Action& action);

// What --kv says: f32 or bf16.
KvPrecision KvFrom(const std::string& name);

// Number of threads, or UsageError.
int ThreadsFrom(const CommonFlags& flags);

// What a run is to do when the system refuses threads: says so, if not `quiet`, and writes how many compute to
// `num_threads`, which outlives it.
FewerThreads OnFewerThreads(int& num_threads, bool quiet);

// Options of a run that ends on a signal (stop.h), with `num_threads` as above and what --kv says.
RunOptions StoppableRun(int& num_threads, const std::string& kv, bool quiet);

// Makes the kernels use the target that --target names (`name`), or OCTAVO_TARGET where that is empty, else the best. UsageError for one
// that is not there. Says so, if not `quiet`, where this CPU runs nothing but portable code.
void ApplyTarget(const std::string& name, bool quiet);
inline void ApplyTarget(const CommonFlags& flags) { ApplyTarget(flags.target, flags.quiet); }

// The flags of one command, added one by one. A flag's value is taken as it is, also an empty one or one that begins with a dash.
// Given again, the last one counts, except for AddTexts. Defaults are those that the variables have; help shows them.
class FlagAdder {
 public:
  explicit FlagAdder(CLI::App& command) : command_(command) {}

  // Heads the flags that follow in the help.
  void Group(const std::string& name) { group_ = name; }

  void AddSwitch(const std::string& name, bool& value, const std::string& help);
  // `parse` throws UsageError that says what was expected.
  CLI::Option* AddParsed(const std::string& name, const std::string& value_name, const std::string& help,
                         const std::function<void(const std::string&)>& parse);
  void AddUnsigned(const std::string& name, const std::string& value_name, uint64_t& value, const std::string& help,
                   uint64_t least = 0);
  void AddDouble(const std::string& name, const std::string& value_name, double& value, const std::string& help);
  void AddText(const std::string& name, const std::string& value_name, std::string& value, const std::string& help);
  void AddChoice(const std::string& name, std::string& value, const std::vector<std::string>& choices,
                 const std::string& help);
  // Repeatable.
  void AddTexts(const std::string& name, const std::string& value_name, std::vector<std::string>& values,
                const std::string& help);
  void AddKv(std::string& kv);
  // --model, --target, --threads, --quiet and --help.
  void AddCommon(CommonFlags& flags);

 private:
  CLI::App& command_;
  std::string group_ = "Options";
};

// Parse the whole of `text`; throw UsageError that says what was expected.
uint64_t ParseUnsigned(const std::string& text, uint64_t least = 0);
double ParseDouble(const std::string& text);

// "a, b or c"
std::string Either(const std::vector<std::string>& choices);

// Writes one line to standard error, whatever `message` holds; when that cannot be written there is nobody left to tell.
void ComplainLine(std::string_view message);

template <typename... Args>
void Complain(fmt::format_string<Args...> format, Args&&... args) {
  ComplainLine(fmt::format(format, std::forward<Args>(args)...));
}

// Warnings about keys of JSON lines that nobody reads: one for each, and not for ever.
class UnknownKeys {
 public:
  explicit UnknownKeys(bool quiet) : quiet_(quiet) {}
  void Warn(const std::string& key, std::string_view input_name, uint64_t line);

 private:
  const bool quiet_;
  std::set<std::string> warned_;
};

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_COMMAND_H_
