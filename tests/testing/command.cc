// Starting, feeding and reading one process; see command.h.
#include "tests/testing/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace octavo::test {
namespace {

using Clock = std::chrono::steady_clock;

void Check(bool good, const char* what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

// A file descriptor that is closed when it goes.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { Close(); }

  int get() const { return number_; }
  bool open() const { return number_ >= 0; }
  void Close() {
    if (open()) close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

// The two ends of a channel: ours, and the one that becomes a standard stream of the process.
struct Channel {
  Descriptor ours, theirs;
};

// For standard input: a socket, since writing to one that was closed need not raise SIGPIPE here.
Channel OpenSocket() {
  std::array<int, 2> ends;
  Check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "socketpair");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Channel OpenPipe() {
  std::array<int, 2> ends;
  Check(pipe2(ends.data(), O_CLOEXEC) == 0, "pipe2");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Channel OpenTerminal() {
  Channel channel{Descriptor(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), Descriptor()};
  const int ours = channel.ours.get();
  Check(ours >= 0 && grantpt(ours) == 0 && unlockpt(ours) == 0, "posix_openpt");
  channel.theirs = Descriptor(open(ptsname(ours), O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios mode;
  Check(tcgetattr(channel.theirs.get(), &mode) == 0, "tcgetattr");
  cfmakeraw(&mode);  // no \n to \r\n
  Check(tcsetattr(channel.theirs.get(), TCSANOW, &mode) == 0, "tcsetattr");
  return channel;
}

// An open file in place of a pipe: nothing of it is ours.
Channel OpenFile(const std::string& path, int how) {
  Descriptor file(open(path.c_str(), how | O_CLOEXEC, 0666));
  Check(file.open(), path.c_str());
  return {Descriptor(), std::move(file)};
}

// While it lives: signals are ignored, here and in processes started.
class IgnoredSignals {
 public:
  explicit IgnoredSignals(const RunOptions& options) {
    for (const int signal : options.ignored_signals) Set(signal, SIG_IGN);
    Set(SIGPIPE, options.ignore_closed_pipes ? SIG_IGN : SIG_DFL);
    if (options.largest_file_bytes != RunOptions().largest_file_bytes) Set(SIGXFSZ, SIG_IGN);
  }
  ~IgnoredSignals() {
    for (const auto& [signal, handler] : before_) std::signal(signal, handler);
  }

 private:
  void Set(int signal, sighandler_t handler) { before_.emplace_back(signal, std::signal(signal, handler)); }

  std::vector<std::pair<int, sighandler_t>> before_;
};

// While it lives: no file may grow beyond so many bytes, here and in processes started.
class FileLimit {
 public:
  explicit FileLimit(uint64_t bytes) {
    Check(getrlimit(RLIMIT_FSIZE, &before_) == 0, "getrlimit");
    rlimit limit = before_;
    limit.rlim_cur = std::min<rlim_t>(bytes, before_.rlim_max);
    Check(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
  }
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

// Standard input, output, error, and one that only tells when the process has ended.
using Channels = std::array<Channel, 4>;

// The environment of this process with `changes` made to it.
std::vector<char*> EnvironmentWith(const std::vector<std::string>& changes) {
  std::vector<char*> variables;
  for (char** variable = environ; *variable; ++variable) {
    const bool changed = std::any_of(changes.begin(), changes.end(), [&](const std::string& change) {
      return std::string_view(*variable).starts_with(change.substr(0, change.find('=') + 1));
    });
    if (!changed) variables.push_back(*variable);
  }
  for (const std::string& change : changes) variables.push_back(const_cast<char*>(change.c_str()));
  variables.push_back(nullptr);
  return variables;
}

pid_t Start(const std::vector<std::string>& arguments, const RunOptions& options, Channels& channels) {
  std::vector<char*> argv = {const_cast<char*>(OCTAVO_COMMAND)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 4; ++i) {
    if (std::find(options.closed.begin(), options.closed.end(), i) != options.closed.end()) {
      posix_spawn_file_actions_addclose(&actions, i);
    } else {
      posix_spawn_file_actions_adddup2(&actions, channels[static_cast<size_t>(i)].theirs.get(), i);
    }
  }
  pid_t process = 0;
  const IgnoredSignals ignored(options);
  const FileLimit limit(options.largest_file_bytes);
  errno = posix_spawn(&process, OCTAVO_COMMAND, &actions, nullptr, argv.data(),
                      EnvironmentWith(options.environment).data());
  posix_spawn_file_actions_destroy(&actions);
  Check(errno == 0, OCTAVO_COMMAND);
  for (Channel& channel : channels) channel.theirs.Close();
  return process;
}

// Sends some of what is left; closes the channel when the process does not want it.
void SendSome(Descriptor& to, std::string& left) {
  const ssize_t sent = send(to.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) {
    left.erase(0, static_cast<size_t>(sent));
  } else if (errno != EAGAIN) {
    to.Close();
  }
}

void ReceiveSome(Descriptor& from, std::string& text) {
  std::array<char, 1 << 16> bytes;
  const ssize_t got = read(from.get(), bytes.data(), bytes.size());
  // A terminal whose other end is closed gives an error instead of an end.
  if (got <= 0) return from.Close();
  text.append(bytes.data(), static_cast<size_t>(got));
}

}  // namespace

struct Process::State {
  RunOptions options;
  Channels channels;
  pid_t process = 0;  // 0: has been waited for
  RunResult result;
  std::string left;  // of the input
};

Process::Process(const std::vector<std::string>& arguments, const RunOptions& options)
    : state_(std::make_unique<State>()) {
  state_->options = options;
  state_->left = options.input;
  const int writing = O_WRONLY | O_CREAT | (options.append ? O_APPEND : O_TRUNC);
  state_->channels = {options.input_path.empty() ? OpenSocket() : OpenFile(options.input_path, O_RDONLY),
                      options.terminal              ? OpenTerminal()
                      : options.output_path.empty() ? OpenPipe()
                                                    : OpenFile(options.output_path, writing),
                      options.terminal_messages       ? OpenTerminal()
                      : options.messages_path.empty() ? OpenPipe()
                                                      : OpenFile(options.messages_path, writing),
                      OpenPipe()};
  if (options.non_blocking_output) {
    const int theirs = state_->channels[1].theirs.get();
    Check(fcntl(theirs, F_SETFL, fcntl(theirs, F_GETFL) | O_NONBLOCK) == 0, "fcntl");
  }
  state_->process = Start(arguments, options, state_->channels);
}

Process::~Process() {
  if (state_->process == 0) return;
  Signal(SIGKILL);
  waitpid(state_->process, nullptr, 0);
}

void Process::Send(std::string_view bytes) { state_->left += bytes; }

void Process::EndInput() { state_->options.hold_input_until_bytes = 0; }

void Process::Signal(int signal) const { kill(state_->process, signal); }

std::chrono::duration<double> Process::CpuTime() const {
  clockid_t clock;
  timespec time = {};
  if (clock_getcpuclockid(state_->process, &clock) == 0) clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

bool Process::Catches(int signal) const {
  std::ifstream status(fmt::format("/proc/{}/status", state_->process));
  for (std::string line; std::getline(status, line);) {
    constexpr std::string_view kCaught = "SigCgt:";
    if (line.starts_with(kCaught)) return std::stoull(line.substr(kCaught.size()), nullptr, 16) >> (signal - 1) & 1;
  }
  return false;
}

const RunResult& Process::so_far() const { return state_->result; }

bool Process::TalkUntil(const std::function<bool()>& done) {
  constexpr int kAskEveryMs = 2;
  const RunOptions& options = state_->options;
  RunResult& result = state_->result;
  Channels& channels = state_->channels;
  Descriptor &in = channels[0].ours, &out = channels[1].ours, &err = channels[2].ours, &alive = channels[3].ours;
  const Clock::time_point end = Clock::now() + options.timeout;
  std::string nothing;
  while (out.open() || err.open() || alive.open()) {
    if (result.out.size() >= options.close_output_after_bytes) out.Close();
    const bool paused = result.out.size() >= options.pause_output_after_bytes;
    if (paused && !alive.open() && out.open()) {
      out.Close();
      continue;
    }
    const bool held = result.out.size() < options.hold_input_until_bytes;
    if (state_->left.empty() && !held) in.Close();
    if (done && done()) return true;
    std::array<pollfd, 4> wait = {{{state_->left.empty() ? -1 : in.get(), POLLOUT, 0},
                                   {paused ? -1 : out.get(), POLLIN, 0},
                                   {err.get(), POLLIN, 0},
                                   {alive.get(), POLLIN, 0}}};
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    result.timed_out = rest <= 0;
    if (result.timed_out) return false;
    const int patience = done ? kAskEveryMs : static_cast<int>(rest);
    if (poll(wait.data(), wait.size(), patience) < 0) Check(errno == EINTR, "poll");
    if (wait[0].revents) SendSome(in, state_->left);
    if (wait[1].revents) ReceiveSome(out, result.out);
    if (wait[2].revents) ReceiveSome(err, result.err);
    if (wait[3].revents) ReceiveSome(alive, nothing);
  }
  return false;
}

RunResult Process::Wait() {
  RunResult& result = state_->result;
  TalkUntil(nullptr);
  if (result.timed_out) Signal(SIGKILL);
  int status = 0;
  rusage usage;
  while (wait4(state_->process, &status, 0, &usage) < 0) Check(errno == EINTR, "wait4");
  state_->process = 0;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.peak_memory_bytes = static_cast<uint64_t>(usage.ru_maxrss) << 10;
  return std::move(result);
}

RunResult RunOctavo(const std::vector<std::string>& arguments, const RunOptions& options) {
  return Process(arguments, options).Wait();
}

}  // namespace octavo::test
