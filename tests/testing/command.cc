// Starting, feeding and reading one process; see command.h.
#include "tests/testing/command.h"

#include <fcntl.h>
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
Channel OpenFile(const std::string& path) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  Check(file.open(), path.c_str());
  return {Descriptor(), std::move(file)};
}

// While it lives: a write to a closed pipe gives an error instead of SIGPIPE, here and in processes started.
class IgnoreClosedPipes {
 public:
  explicit IgnoreClosedPipes(bool ignore) : before_(std::signal(SIGPIPE, ignore ? SIG_IGN : SIG_DFL)) {}
  ~IgnoreClosedPipes() { std::signal(SIGPIPE, before_); }

 private:
  sighandler_t before_;
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
    posix_spawn_file_actions_adddup2(&actions, channels[static_cast<size_t>(i)].theirs.get(), i);
  }
  pid_t process = 0;
  errno = posix_spawn(&process, OCTAVO_COMMAND, &actions, nullptr, argv.data(),
                      EnvironmentWith(options.environment).data());
  posix_spawn_file_actions_destroy(&actions);
  Check(errno == 0, OCTAVO_COMMAND);
  for (Channel& channel : channels) channel.theirs.Close();
  return process;
}

// Sends some of what is left; closes the channel when the process does not want it.
void SendSome(Descriptor& to, std::string_view& left) {
  const ssize_t sent = send(to.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) {
    left.remove_prefix(static_cast<size_t>(sent));
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

// Feeds and reads until the process has ended. False when the time is over.
bool Talk(Channels& channels, const RunOptions& options, RunResult& result) {
  Descriptor &in = channels[0].ours, &out = channels[1].ours, &err = channels[2].ours, &alive = channels[3].ours;
  const Clock::time_point end = Clock::now() + options.timeout;
  std::string_view left = options.input;
  std::string nothing;
  while (out.open() || err.open() || alive.open()) {
    const bool held = result.out.size() < options.hold_input_until_bytes;
    if (left.empty() && !held) in.Close();
    std::array<pollfd, 4> wait = {{{left.empty() ? -1 : in.get(), POLLOUT, 0},
                                   {out.get(), POLLIN, 0},
                                   {err.get(), POLLIN, 0},
                                   {alive.get(), POLLIN, 0}}};
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (rest <= 0) return false;
    if (poll(wait.data(), wait.size(), static_cast<int>(rest)) < 0) Check(errno == EINTR, "poll");
    if (wait[0].revents) SendSome(in, left);
    if (wait[1].revents) ReceiveSome(out, result.out);
    if (wait[2].revents) ReceiveSome(err, result.err);
    if (wait[3].revents) ReceiveSome(alive, nothing);
    if (result.out.size() >= options.close_output_after_bytes) out.Close();
  }
  return true;
}

}  // namespace

RunResult RunOctavo(const std::vector<std::string>& arguments, const RunOptions& options) {
  Channels channels = {OpenSocket(),
                       options.terminal              ? OpenTerminal()
                       : options.output_path.empty() ? OpenPipe()
                                                     : OpenFile(options.output_path),
                       options.messages_path.empty() ? OpenPipe() : OpenFile(options.messages_path), OpenPipe()};
  RunResult result;
  const IgnoreClosedPipes ignore(options.ignore_closed_pipes);
  const pid_t process = Start(arguments, options, channels);
  result.timed_out = !Talk(channels, options, result);
  if (result.timed_out) kill(process, SIGKILL);
  int status = 0;
  rusage usage;
  while (wait4(process, &status, 0, &usage) < 0) Check(errno == EINTR, "wait4");
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.peak_memory_bytes = static_cast<uint64_t>(usage.ru_maxrss) << 10;
  return result;
}

}  // namespace octavo::test
