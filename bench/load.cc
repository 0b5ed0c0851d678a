// Reads /proc/stat; see load.h.
#include "bench/load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace octavo::bench {
namespace {

// Seconds since the system began, all CPUs together.
struct CpuTime {
  double all = 0, busy = 0, own = 0;
};

CpuTime ReadCpuTime() {
  CpuTime time;
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;  // "cpu"
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  double value = 0;
  // user nice system idle iowait irq softirq steal; guests are part of user.
  for (int i = 0; i < 8 && file >> value; ++i) {
    time.all += value / ticks;
    if (i != 3 && i != 4) time.busy += value / ticks;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  for (const timeval& part : {usage.ru_utime, usage.ru_stime})
    time.own += static_cast<double>(part.tv_sec) + 1e-6 * static_cast<double>(part.tv_usec);
  return time;
}

}  // namespace

double LoadByOthers() {
  constexpr double kLeastSeconds = 0.5;  // /proc/stat counts hundredths
  static const CpuTime began = ReadCpuTime();
  const CpuTime now = ReadCpuTime();
  if (now.all - began.all < kLeastSeconds) return 0;
  return std::max(0.0, ((now.busy - began.busy) - (now.own - began.own)) / (now.all - began.all));
}

}  // namespace octavo::bench
