// Ending a run early; see stop.h.
#include "tools/stop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <initializer_list>

namespace octavo::tools {
namespace {

std::atomic<bool> stop_flag = false;
std::atomic<int> stop_signal = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// Readable from the first request on; made before any signal can come.
int StopEvent() {
  static const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return event;
}

extern "C" void OnSignal(int signal) { RequestStop(signal); }

}  // namespace

void StopOnSignals() {
  StopEvent();
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction before;
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = OnSignal;
    action.sa_flags = SA_RESETHAND | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

void RequestStop(int signal) {
  const int saved = errno;
  if (signal != 0) stop_signal = signal;
  stop_flag = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(StopEvent(), &one, sizeof(one));
  errno = saved;
}

const std::atomic<bool>& StopFlag() { return stop_flag; }

bool WaitToRead(int fd) {
  pollfd waits[2] = {{fd, POLLIN, 0}, {StopEvent(), POLLIN, 0}};
  while (!stop_flag) {
    if (poll(waits, 2, -1) < 0 && errno != EINTR) return true;  // read() will say what is wrong
    if (waits[1].revents != 0) break;
    if (waits[0].revents != 0) return true;
  }
  return false;
}

int ExitCode(int otherwise) { return stop_signal != 0 ? 128 + stop_signal : otherwise; }

}  // namespace octavo::tools
