// Ending a run early; see stop.h. No thread watches: handlers set flags, and the alarm clock counts the seconds.
#include "tools/stop.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace octavo::tools {
namespace {

std::atomic<bool> stop_flag = false, abandon_flag = false;
std::atomic<int> stop_signal = 0, num_signals = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// What the handler writes, which may neither format nor allocate.
std::string& Notice() {
  static std::string notice;
  return notice;
}
const char* notice_text = "";
size_t notice_size = 0;

// Readable from the first request on; made before any signal can come.
int StopEvent() {
  static const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return event;
}

// INT and TERM. Calls only what is safe in a signal handler.
extern "C" void OnSignal(int signal) {
  const int saved = errno;
  const int number = ++num_signals;
  if (number >= 3) _exit(128 + signal);
  stop_signal = signal;
  if (number == 1) {
    RequestStop();
    alarm(kGraceSeconds);
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, notice_text, notice_size);
  } else {
    RequestAbandon();
    alarm(1);
  }
  errno = saved;
}

// The time after a signal is over.
extern "C" void OnAlarm(int) {
  const int saved = errno;
  if (num_signals >= 2) _exit(128 + stop_signal);
  RequestAbandon();
  errno = saved;
}

void Handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void StopOnSignals(std::string_view noun, bool shows_progress) {
  StopEvent();
  if (!noun.empty()) {
    Notice() = fmt::format("{}octavo: stopping; {} in hand have {} s to be finished, a second signal ends at once\n",
                           shows_progress ? "\r\x1b[K" : "", noun, kGraceSeconds);
    notice_text = Notice().data();
    notice_size = Notice().size();
  }
  Handle(SIGALRM, OnAlarm);
  sigset_t alarm_only;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarm_only, nullptr);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction before;
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) Handle(signal, OnSignal);
  }
}

void RequestStop() {
  stop_flag = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(StopEvent(), &one, sizeof(one));
}

void RequestAbandon() {
  abandon_flag = true;
  RequestStop();
}

const std::atomic<bool>& StopFlag() { return stop_flag; }
const std::atomic<bool>& AbandonFlag() { return abandon_flag; }

bool WaitToRead(int fd) {
  pollfd waits[2] = {{fd, POLLIN, 0}, {StopEvent(), POLLIN, 0}};
  while (!stop_flag) {
    if (poll(waits, 2, -1) < 0 && errno != EINTR) return true;  // read() will say what is wrong
    if (waits[1].revents != 0) break;
    if (waits[0].revents != 0) return true;
  }
  return false;
}

int StopSignal() { return stop_signal; }

int ExitCode(int otherwise) { return stop_signal != 0 ? 128 + stop_signal : otherwise; }

}  // namespace octavo::tools
