// How many threads to use when nobody says.
#ifndef OCTAVO_ENGINE_THREADS_H_
#define OCTAVO_ENGINE_THREADS_H_

#include <string>

namespace octavo {

struct ThreadCount {
  int count = 1;
  std::string reason;  // for `octavo info`: "2 CPUs in the affinity mask"
};

// The CPUs that this process may run on; at least 1.
ThreadCount DefaultThreads();

// `requested`, or the default for 0. Throws Error for negative and absurd numbers.
int ChooseThreads(int requested);

}  // namespace octavo

#endif  // OCTAVO_ENGINE_THREADS_H_
