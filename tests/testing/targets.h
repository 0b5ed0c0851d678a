// The targets that tests run kernels on.
#ifndef OCTAVO_TESTS_TESTING_TARGETS_H_
#define OCTAVO_TESTS_TESTING_TARGETS_H_

#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/targets.h"

namespace octavo::test {

// All that this CPU runs, or only the one that the environment variable OCTAVO_TEST_TARGET names: an emulated CPU is there for its best target,
// and tests the others more slowly than the emulated CPUs that stand for those (tests/cpus/). Empty when that one cannot run.
inline std::vector<std::string> TestedTargets() {
  std::vector<std::string> targets = RunnableTargets();
  if (const char* only = std::getenv("OCTAVO_TEST_TARGET")) {
    std::erase_if(targets, [only](const std::string& target) { return target != only; });
  }
  return targets;
}

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_TARGETS_H_
