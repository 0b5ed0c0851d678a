// Inputs of the digests: numbers made of random bits by integer arithmetic and exact conversions, so that they are the same wherever the
// digests are computed; and the hash of what the kernels make of them.
#ifndef OCTAVO_ENGINE_CHECK_FIXED_H_
#define OCTAVO_ENGINE_CHECK_FIXED_H_

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/check/random.h"
#include "engine/hash.h"

namespace octavo::check {

class FixedInputs {
 public:
  explicit FixedInputs(uint64_t seed) : random_(seed) {}

  size_t Below(size_t end) { return random_.Below(end); }
  std::vector<int32_t> Ids(size_t count, size_t end) { return random_.Tokens(count, end); }

  // A multiple of 2^-23 · scale in [-scale, scale), exact where scale is a power of two.
  float Number(float scale) { return (static_cast<float>(random_.Bits() >> 40) * 0x1p-23f - 1.0f) * scale; }
  std::vector<float> Numbers(size_t count, float scale, float offset = 0) {
    std::vector<float> out(count);
    for (float& x : out) x = Number(scale) + offset;
    return out;
  }

  // Both signs, magnitudes from 2^low to below 2^high, both from -126 to 128.
  std::vector<float> Magnitudes(size_t count, int low, int high) {
    std::vector<float> out(count);
    for (float& x : out) {
      const uint64_t bits = random_.Bits();
      const auto exponent = static_cast<uint32_t>(low + 127) + (bits >> 32) % static_cast<uint32_t>(high - low);
      x = std::bit_cast<float>(static_cast<uint32_t>(bits & 0x807FFFFF) | static_cast<uint32_t>(exponent << 23));
    }
    return out;
  }

 private:
  Random random_;
};

// FNV-1a over the bytes of numbers, lowest first. The value of a hash that has met a NaN, whose bits mean nothing, is 0.
class DigestHash {
 public:
  void Add(float x) {
    nan_ |= std::isnan(x);
    AddWord(std::bit_cast<uint32_t>(x));
  }
  void Add(double x) {
    nan_ |= std::isnan(x);
    const auto bits = std::bit_cast<uint64_t>(x);
    AddWord(static_cast<uint32_t>(bits));
    AddWord(static_cast<uint32_t>(bits >> 32));
  }
  void Add(int32_t x) { AddWord(static_cast<uint32_t>(x)); }
  void Add(std::string_view bytes) { hash_.Add(bytes); }
  uint64_t value() const { return nan_ ? 0 : hash_.value(); }

 private:
  void AddWord(uint32_t word) {
    const char bytes[] = {static_cast<char>(word), static_cast<char>(word >> 8), static_cast<char>(word >> 16),
                          static_cast<char>(word >> 24)};
    hash_.Add({bytes, sizeof(bytes)});
  }

  Fnv1a hash_;
  bool nan_ = false;
};

}  // namespace octavo::check

#endif  // OCTAVO_ENGINE_CHECK_FIXED_H_
