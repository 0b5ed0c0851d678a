// How much work something is: instructions where the system counts them, else seconds of CPU. For ratios, not for
// judging speed.
#ifndef OCTAVO_TESTS_TESTING_WORK_H_
#define OCTAVO_TESTS_TESTING_WORK_H_

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace octavo::test {

// Of the calling thread, in the user's part.
class WorkMeter {
 public:
  WorkMeter() {
    perf_event_attr wanted = {};
    wanted.type = PERF_TYPE_HARDWARE;
    wanted.size = sizeof(wanted);
    wanted.config = PERF_COUNT_HW_INSTRUCTIONS;
    wanted.exclude_kernel = wanted.exclude_hv = 1;
    fd_ = static_cast<int>(syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  }
  ~WorkMeter() {
    if (fd_ >= 0) close(fd_);
  }
  WorkMeter(const WorkMeter&) = delete;
  WorkMeter& operator=(const WorkMeter&) = delete;

  bool counts_instructions() const { return fd_ >= 0; }

  // The least of some runs: others only add to the seconds.
  template <typename Work>
  double Of(const Work& work) const {
    double least = std::numeric_limits<double>::infinity();
    for (int runs = counts_instructions() ? 1 : 5; runs > 0; --runs) {
      const double before = Now();
      work();
      least = std::min(least, Now() - before);
    }
    return least;
  }

  // So far.
  double Now() const {
    uint64_t count = 0;
    if (fd_ >= 0 && read(fd_, &count, sizeof(count)) == sizeof(count)) return static_cast<double>(count);
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

 private:
  int fd_;
};

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_WORK_H_
