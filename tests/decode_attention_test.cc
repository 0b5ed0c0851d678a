// Decode attention: the vector kernels. The reference, which causal attention shares, is tested in causal_attention_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/aligned.h"
#include "kernels/decode_attention.h"
#include "kernels/targets.h"
#include "tests/testing/random.h"
#include "tests/testing/targets.h"
#include "tests/testing/vector_kernel.h"

namespace octavo::test {
namespace {

TEST(VectorKernel, AgreesWithTheReferenceOnEveryTarget) { ExpectVectorKernel("decode_attention"); }

TEST(VectorKernel, HasLargeHeadsAndLongTexts) { ExpectLargeAttention(check::CheckDecodeAttention); }

// A lane that holds NaN everywhere, also in the slots that it reads, does not disturb its neighbours.
TEST(VectorKernel, LanesDoNotMix) {
  constexpr size_t kSlots = 5, kSize = 3, kFloats = kSlots * kSize * kPanelRows, kBad = 6;
  Random random(3);
  uint32_t places[2 * kSlots];
  FillPlaces(kSlots, true, places);
  const std::vector<float> numbers = random.Floats(2 * kFloats + kSize * kPanelRows);
  for (const std::string& target : TestedTargets()) {
    UseTarget(target);
    AlignedFloats out[2];
    for (AlignedFloats& result : out) {
      AlignedFloats keys(numbers.begin(), numbers.begin() + kFloats),
          values(numbers.begin() + kFloats, numbers.begin() + 2 * kFloats);
      AlignedFloats q(numbers.begin() + 2 * kFloats, numbers.end()), scratch(kSlots * kPanelRows);
      if (&result == &out[1]) {
        for (size_t i = kBad; i < kFloats; i += kPanelRows)
          keys[i] = values[i] = std::numeric_limits<float>::quiet_NaN();
      }
      int32_t lengths[kPanelRows];
      for (size_t r = 0; r < kPanelRows; ++r) lengths[r] = static_cast<int32_t>(1 + r % kSlots);
      result.resize(kSize * kPanelRows);
      DecodeAttention(q.data(), {keys.data(), values.data(), kFloats, kSlots, 2, places}, lengths, 1, kSize,
                      result.data(), scratch.data());
    }
    for (size_t i = 0; i < out[0].size(); ++i) {
      if (i % kPanelRows == kBad) continue;
      EXPECT_EQ(out[0][i], out[1][i]) << target << " element " << i;
    }
    EXPECT_NE(out[1][kBad], out[1][kBad]) << "NaN went in and none came out";
  }
  UseBestTarget();
}

// Every place once, the same order twice, and irregular: no step from slot to slot is the rule.
TEST(FillPlaces, IsAPermutationTwice) {
  for (const size_t slots : {1, 2, 3, 64, 100}) {
    for (const bool scattered : {false, true}) {
      std::vector<uint32_t> places(2 * slots);
      FillPlaces(slots, scattered, places.data());
      std::vector<bool> taken(slots);
      std::map<uint32_t, size_t> steps;
      for (size_t s = 0; s < slots; ++s) {
        ASSERT_LT(places[s], slots);
        EXPECT_FALSE(taken[places[s]]) << "place " << places[s];
        taken[places[s]] = true;
        EXPECT_EQ(places[s + slots], places[s]);
        if (s > 0) ++steps[places[s] - places[s - 1]];
      }
      for (const auto& [step, count] : steps) {
        if (!scattered) {
          EXPECT_EQ(step, 1u);
        } else if (slots >= 64) {
          EXPECT_LT(count, slots / 4) << "step " << static_cast<int32_t>(step);
        }
      }
    }
  }
}

// ---- bfloat16 ----

struct Rounding {
  uint32_t from;  // a float
  uint16_t to;
};

// Bits before and after, by the definition: to nearest, ties to the even one.
constexpr Rounding kRoundings[] = {
    {0x3F800000, 0x3F80},                        // 1 stays
    {0x3F807FFF, 0x3F80}, {0x3F808000, 0x3F80},  // below a tie, and a tie: down to the even one
    {0x3F808001, 0x3F81}, {0x3F818000, 0x3F82},  // above it; a tie: up to the even one
    {0xBF818000, 0xBF82}, {0xBF808000, 0xBF80},  // alike for negative numbers
    {0x00008000, 0x0000}, {0x00018000, 0x0002},  // denormals
    {0x80000000, 0x8000},                        // -0
    {0x7F7F7FFF, 0x7F7F}, {0x7F7F8000, 0x7F80},  // the largest that stays finite; what rounds to infinity
    {0x7F800000, 0x7F80}, {0xFF800000, 0xFF80},  // infinities
};

TEST(Bfloat16, RoundsToNearestTiesToEven) {
  for (const std::string& target : TestedTargets()) {
    SCOPED_TRACE(target);
    UseTarget(target);
    AlignedFloats x(kPanelRows);
    for (const Rounding& rounding : kRoundings) {
      std::fill(x.begin(), x.end(), std::bit_cast<float>(rounding.from));
      RoundToBfloat16(x.data(), 1);
      for (const float rounded : x) EXPECT_EQ(std::bit_cast<uint32_t>(rounded), uint32_t{rounding.to} << 16);
    }
    // Its payload lies in the half that is cut off, or carries into the sign.
    for (const uint32_t nan : {0x7F800001u, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
      std::fill(x.begin(), x.end(), std::bit_cast<float>(nan));
      RoundToBfloat16(x.data(), 1);
      for (const float rounded : x) EXPECT_TRUE(std::isnan(rounded));
    }
  }
  UseBestTarget();
}

// Two heads of three numbers: the even one of a pair in the low half, nothing in the last high half.
TEST(Bfloat16, PairsLieSideBySide) {
  constexpr size_t kHeads = 2, kSize = 3, kStride = 5 * kPanelRows;
  for (const std::string& target : TestedTargets()) {
    SCOPED_TRACE(target);
    UseTarget(target);
    AlignedFloats from(kHeads * kSize * kPanelRows);
    // Exact in bfloat16: feature f of lane r is (16·f + r) / 128 + 1.
    for (size_t i = 0; i < from.size(); ++i) from[i] = 1 + static_cast<float>(i) / 128;
    std::vector<uint32_t, AlignedAllocator<uint32_t>> to(kHeads * kStride, 0xDEADBEEF);
    StorePairs(from.data(), kHeads, kSize, to.data(), kStride);
    for (size_t head = 0; head < kHeads; ++head) {
      for (size_t r = 0; r < kPanelRows; ++r) {
        const auto half = [&](size_t i) {
          return std::bit_cast<uint32_t>(from[(head * kSize + i) * kPanelRows + r]) >> 16;
        };
        EXPECT_EQ(to[head * kStride + r], half(1) << 16 | half(0));
        EXPECT_EQ(to[head * kStride + kPanelRows + r], half(2));
        for (size_t i = NumPairs(kSize); i < kStride / kPanelRows; ++i)
          EXPECT_EQ(to[head * kStride + i * kPanelRows + r], 0xDEADBEEF) << "wrote outside";
      }
    }
  }
  UseBestTarget();
}

}  // namespace
}  // namespace octavo::test
