// How many threads to use when nobody says.
#ifndef OCTAVO_ENGINE_THREADS_H_
#define OCTAVO_ENGINE_THREADS_H_

#include <string>

namespace octavo {

struct ThreadCount {
  int count = 1;
  std::string reason;  // for `octavo info`: "16 CPUs in the affinity mask, a CPU quota of 1.5 (cgroup v2)"
};

// As many as this process may keep busy: the CPUs that it may run on, or its container's CPU quota, rounded up, where that is less; at
// least 1. `root` is a folder that stands for / when the quota is looked up.
ThreadCount DefaultThreads(const std::string& root = "");

// `requested`, or the default for 0. Throws Error for negative and absurd numbers.
int ChooseThreads(int requested);

}  // namespace octavo

#endif  // OCTAVO_ENGINE_THREADS_H_
