// The default number of threads; see threads.h.
#include "engine/threads.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "engine/fail.h"

namespace octavo {

ThreadCount DefaultThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    const int count = std::max(1, CPU_COUNT(&set));
    return {count, fmt::format("{} CPUs in the affinity mask", count)};
  }
  // More CPUs than the mask can name.
  const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return {count, fmt::format("{} CPUs", count)};
}

int ChooseThreads(int requested) {
  const int most = std::max(256, 4 * DefaultThreads().count);
  if (requested < 0 || requested > most) Fail("threads is {}; expected 0 (automatic) to {}", requested, most);
  return requested == 0 ? DefaultThreads().count : requested;
}

}  // namespace octavo
