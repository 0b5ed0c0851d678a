// Philox4x32-10 against Random123's implementation and its known answers, and the layout of the draws' key and counter.
#include "engine/philox.h"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "tests/testing/random.h"

namespace octavo::test {
namespace {

using Counter = std::array<uint32_t, 4>;
using Key = std::array<uint32_t, 2>;

Counter Oracle(const Counter& counter, const Key& key) {
  const r123::Philox4x32_R<10>::ctr_type c = {{counter[0], counter[1], counter[2], counter[3]}};
  const r123::Philox4x32_R<10>::key_type k = {{key[0], key[1]}};
  const auto result = r123::Philox4x32_R<10>()(c, k);
  return {result[0], result[1], result[2], result[3]};
}

// From kat_vectors of Random123: zeros, ones, digits of π.
static_assert(Philox4x32({0, 0, 0, 0}, {0, 0}) == Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(Philox, EqualsRandom123) {
  Random random(1);
  for (int i = 0; i < 100'000; ++i) {
    Counter counter;
    Key key;
    for (uint32_t& word : counter) word = static_cast<uint32_t>(random.Bits());
    for (uint32_t& word : key) word = static_cast<uint32_t>(random.Bits());
    ASSERT_EQ(Philox4x32(counter, key), Oracle(counter, key));
  }
  // Each bit of counter and key alone.
  for (size_t bit = 0; bit < 192; ++bit) {
    Counter counter = {};
    Key key = {};
    (bit < 128 ? counter[bit / 32] : key[bit / 32 - 4]) = 1u << bit % 32;
    ASSERT_EQ(Philox4x32(counter, key), Oracle(counter, key));
  }
}

// key = {seed low, seed high}, counter = {step low, step high, sequence low, sequence high}, u = (first word >> 8) · 2^-24.
TEST(UniformDraw, HasItsLayout) {
  Random random(2);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t seed = random.Bits(), sequence = random.Bits(), step = random.Bits();
    const auto low = [](uint64_t x) { return static_cast<uint32_t>(x & 0xFFFFFFFF); };
    const auto high = [](uint64_t x) { return static_cast<uint32_t>(x / 0x100000000); };
    const Counter words = Oracle({low(step), high(step), low(sequence), high(sequence)}, {low(seed), high(seed)});
    ASSERT_EQ(UniformDraw(seed, sequence, step), static_cast<double>(words[0] / 256) / 16777216.0);
  }
}

TEST(UniformDraw, LiesBelowOneAndSpreads) {
  double sum = 0, lowest = 1, highest = 0;
  std::set<float> seen;
  for (uint64_t step = 0; step < 100'000; ++step) {
    const double u = UniformDraw(7, 0, step);
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
    lowest = std::min(lowest, u);
    highest = std::max(highest, u);
    seen.insert(static_cast<float>(u));
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.005);
  EXPECT_TRUE(lowest < 1e-4 && highest > 1 - 1e-4);
  EXPECT_GT(seen.size(), 99'000u);
  static_assert(static_cast<float>(0xFFFFFFFF >> 8) * 0x1p-24f < 1.0f, "the largest draw rounds to 1");
}

}  // namespace
}  // namespace octavo::test
