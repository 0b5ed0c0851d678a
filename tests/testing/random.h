// Seeded random inputs, the same on every machine: the generator is specified to the bit, and no library distribution is used.
#ifndef OCTAVO_TESTS_TESTING_RANDOM_H_
#define OCTAVO_TESTS_TESTING_RANDOM_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "engine/config.h"

namespace octavo::test {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t Bits() { return engine_(); }

  // 0 … end - 1
  size_t Below(size_t end) { return static_cast<size_t>(Bits() % end); }

  double Uniform(double low = -1, double high = 1) {
    return low + (high - low) * (static_cast<double>(Bits() >> 11) * 0x1p-53);
  }

  // Even over [low, high).
  std::vector<float> Floats(size_t count, double low = -1, double high = 1) {
    std::vector<float> out(count);
    for (float& x : out) x = static_cast<float>(Uniform(low, high));
    return out;
  }

  // Both signs, magnitudes even over the powers of two from 2^low to 2^high: sums of these cancel, and large meets tiny.
  std::vector<float> Magnitudes(size_t count, int low, int high) {
    std::vector<float> out(count);
    for (float& x : out) {
      const int exponent = low + static_cast<int>(Below(static_cast<size_t>(high - low)));
      x = static_cast<float>(std::ldexp(Uniform(1, 2), exponent)) * (Bits() % 2 ? 1.0f : -1.0f);
    }
    return out;
  }

  std::vector<TokenId> Tokens(size_t count, size_t vocabulary_size) {
    std::vector<TokenId> out(count);
    for (TokenId& id : out) id = static_cast<TokenId>(Below(vocabulary_size));
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

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
