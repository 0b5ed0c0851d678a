// Seeded random inputs for tests: the generator of the checks, and sizes that break remainders.
#ifndef OCTAVO_TESTS_TESTING_RANDOM_H_
#define OCTAVO_TESTS_TESTING_RANDOM_H_

#include <cstddef>
#include <vector>

#include "engine/check/random.h"

namespace octavo::test {

using check::Random;

// `from` as another type: kernels are tested in float and in double on the same inputs.
template <typename Value, typename From>
std::vector<Value> As(const std::vector<From>& from) {
  return std::vector<Value>(from.begin(), from.end());
}

// Sizes around the lane counts of every instruction set, and some that no lane count divides.
inline const std::vector<size_t>& OddSizes() {
  static const std::vector<size_t> sizes = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 129};
  return sizes;
}

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_RANDOM_H_
