// Runs the octavo binary as its users do: an argument vector and input bytes in; output, messages and exit code out. No shell.
// Out of scope: what the output means; see command_checks.h for what tests ask of it.
#ifndef OCTAVO_TESTS_TESTING_COMMAND_H_
#define OCTAVO_TESTS_TESTING_COMMAND_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::test {

struct RunOptions {
  std::string input = {};             // bytes on standard input
  std::string input_path = {};        // or an open file
  size_t hold_input_until_bytes = 0;  // standard input ends only once so much of standard output was seen
  size_t close_output_after_bytes =   // standard output is closed once so much of it was seen, as `head` does
      std::numeric_limits<size_t>::max();
  size_t pause_output_after_bytes =  // once so much of standard output was seen, no more is read
      std::numeric_limits<size_t>::max();
  bool ignore_closed_pipes = false;           // as under a parent that ignores SIGPIPE
  std::vector<int> ignored_signals = {};      // the same for others, as under nohup
  bool terminal = false;                      // standard output is a pseudo-terminal that passes bytes on as they are
  bool terminal_messages = false;             // standard error is one
  std::string output_path = {};               // where standard output goes instead, such as /dev/full
  std::string messages_path = {};             // the same for standard error
  std::vector<int> closed = {};               // descriptors 0 to 2 that are closed when it begins, as by `2>&-`
  bool non_blocking_output = false;           // standard output is a pipe that gives EAGAIN when it is full
  bool append = false;                        // to what those two hold, as `>>` does
  std::vector<std::string> environment = {};  // "NAME=value", beside or in place of what this process has
  uint64_t largest_file_bytes =               // a write that would make a file larger fails
      std::numeric_limits<uint64_t>::max();
  std::chrono::seconds timeout{60};  // then the process is killed
};

// As hold_input_until_bytes: until EndInput.
constexpr size_t kHoldInput = std::numeric_limits<size_t>::max();

struct RunResult {
  std::string out, err;
  int exit_code = 0;  // 128 + n when signal n ended it, as shells say it
  bool timed_out = false;
  uint64_t peak_memory_bytes = 0;
};

// One run that can be watched and disturbed. Throws std::system_error when it cannot be started.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments, const RunOptions& options = {});
  ~Process();  // kills it if it still runs

  // More bytes for standard input, sent while talking.
  void Send(std::string_view bytes);
  void EndInput();

  // Feeds and reads until `done`, asked every few milliseconds; false when the process has ended before, or the time is over.
  bool TalkUntil(const std::function<bool()>& done);
  void Signal(int signal) const;

  // What its threads have computed so far: unlike the clock, the same on a busy machine. 0 once it has ended.
  std::chrono::duration<double> CpuTime() const;

  // Whether it has a handler for `signal` by now.
  bool Catches(int signal) const;

  const RunResult& so_far() const;

  // Feeds and reads until the process has ended, once.
  RunResult Wait();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// A run from start to end.
RunResult RunOctavo(const std::vector<std::string>& arguments, const RunOptions& options = {});

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_COMMAND_H_
