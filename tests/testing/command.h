// Runs the octavo binary as its users do: an argument vector and input bytes in; output, messages and exit code out. No shell.
// Out of scope: what the output means; see command_checks.h for what tests ask of it.
#ifndef OCTAVO_TESTS_TESTING_COMMAND_H_
#define OCTAVO_TESTS_TESTING_COMMAND_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace octavo::test {

struct RunOptions {
  std::string input = {};             // bytes on standard input
  size_t hold_input_until_bytes = 0;  // standard input ends only once so much of standard output was seen
  size_t close_output_after_bytes =   // standard output is closed once so much of it was seen, as `head` does
      std::numeric_limits<size_t>::max();
  bool ignore_closed_pipes = false;           // as under a parent that ignores SIGPIPE
  bool terminal = false;                      // standard output is a pseudo-terminal that passes bytes on as they are
  std::string output_path = {};               // where standard output goes instead, such as /dev/full
  std::string messages_path = {};             // the same for standard error
  std::vector<std::string> environment = {};  // "NAME=value", beside or in place of what this process has
  std::chrono::seconds timeout{60};           // then the process is killed
};

struct RunResult {
  std::string out, err;
  int exit_code = 0;  // 128 + n when signal n ended it, as shells say it
  bool timed_out = false;
  uint64_t peak_memory_bytes = 0;
};

// Throws std::system_error when the process cannot be started.
RunResult RunOctavo(const std::vector<std::string>& arguments, const RunOptions& options = {});

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_COMMAND_H_
