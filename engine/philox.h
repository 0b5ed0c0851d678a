// Philox4x32-10, the counter-based random generator behind every draw: the n-th draw of a completion needs no state but its numbers.
// Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011), section 5.3 and table 2.
#ifndef OCTAVO_ENGINE_PHILOX_H_
#define OCTAVO_ENGINE_PHILOX_H_

#include <array>
#include <cstdint>

namespace octavo {

// Ten rounds; a round multiplies two of the four words to 64 bits, swaps halves and mixes in the key, which grows by Weyl steps.
constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// The uniform number in [0, 1), a multiple of 2^-24, that draws new character `step` (from 0) of completion `sequence`.
constexpr float UniformDraw(uint64_t seed, uint64_t sequence, uint64_t step) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  const uint32_t word = Philox4x32({low(step), high(step), low(sequence), high(sequence)}, {low(seed), high(seed)})[0];
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

}  // namespace octavo

#endif  // OCTAVO_ENGINE_PHILOX_H_
