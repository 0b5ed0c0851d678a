// Seeded random inputs, the same on every machine: the generator is specified to the bit, and no library distribution is used.
#ifndef OCTAVO_ENGINE_CHECK_RANDOM_H_
#define OCTAVO_ENGINE_CHECK_RANDOM_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "engine/config.h"

namespace octavo::check {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t Bits() { return engine_(); }

  // 0 … end - 1
  size_t Below(size_t end) { return static_cast<size_t>(Bits() % end); }

  // low … high
  size_t Between(size_t low, size_t high) { return low + Below(high - low + 1); }

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

  // Inputs of one of the kinds that break naive code, about `scale` in size: plain, a large offset, few distinct values (ties), all
  // equal, zeros with signs, denormals, wide magnitudes.
  std::vector<float> Hostile(size_t count, double scale = 1) {
    switch (Below(8)) {
      case 0: {
        const double offset = Uniform(-1000, 1000) * scale;
        return Floats(count, offset - scale, offset + scale);
      }
      case 1: {
        std::vector<float> out(count);
        for (float& x : out) x = static_cast<float>((static_cast<double>(Below(5)) - 2) * scale);
        return out;
      }
      case 2:
        return std::vector<float>(count, static_cast<float>(Uniform() * scale));
      case 3: {
        std::vector<float> out(count);
        for (float& x : out) x = Bits() % 2 ? 0.0f : -0.0f;
        return out;
      }
      case 4: {
        // Of a large array some: operations on denormals take up to a hundred times as long, on Intel's CPUs and where they are emulated.
        constexpr size_t kAllOf = 256, kStep = 16;
        constexpr double kLargest = 0x1p-127;
        if (count <= kAllOf) return Floats(count, -kLargest, kLargest);
        std::vector<float> out = Floats(count, -scale, scale);
        for (size_t i = Below(kStep); i < count; i += kStep) out[i] = static_cast<float>(Uniform(-kLargest, kLargest));
        return out;
      }
      case 5: {
        std::vector<float> out = Magnitudes(count, -12, 4);
        for (float& x : out) x *= static_cast<float>(scale);
        return out;
      }
      default:
        return Floats(count, -scale, scale);
    }
  }

  // A size around the lane counts of every target, or any up to `most`.
  size_t Size(size_t most) {
    static constexpr size_t kOdd[] = {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129};
    const size_t size = Bits() % 2 ? kOdd[Below(std::size(kOdd))] : Between(1, most);
    return size <= most ? size : Between(1, most);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace octavo::check

#endif  // OCTAVO_ENGINE_CHECK_RANDOM_H_
