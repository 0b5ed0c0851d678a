// The default number of threads; see threads.h.
#include "engine/threads.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "engine/fail.h"
#include "engine/utf8.h"

namespace octavo {
namespace {

std::string CountedCpus(int count) { return Counted(static_cast<uint64_t>(count), "CPU"); }

}  // namespace

ThreadCount DefaultThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    const int count = std::max(1, CPU_COUNT(&set));
    return {count, fmt::format("{} in the affinity mask", CountedCpus(count))};
  }
  // More CPUs than the mask can name.
  const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return {count, CountedCpus(count)};
}

int ChooseThreads(int requested) {
  const int most = std::max(256, 4 * DefaultThreads().count);
  if (requested < 0 || requested > most) Fail("threads is {}; expected 0 (automatic) to {}", requested, most);
  return requested == 0 ? DefaultThreads().count : requested;
}

}  // namespace octavo
