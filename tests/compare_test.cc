// The comparators of tests/testing must be able to fail: a test of every way in which numbers can be wrong.
#include "tests/testing/compare.h"
#include "engine/check/guarded.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "tests/testing/random.h"

namespace octavo::test {
namespace {

using check::Guarded;
using check::kOddStart;
using check::kPageStart;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Within, AcceptsTheBoundItself) {
  EXPECT_TRUE(Within(std::vector{1.25, -3.0}, std::vector{1.0, -3.25}, 0.25));
  EXPECT_FALSE(Within(std::vector{1.25, -3.0}, std::vector{1.0, -3.25}, 0.2499));
  EXPECT_TRUE(Within(std::vector{2.0f}, std::vector{2.0}, 0));
}

TEST(Within, RejectsNaN) {
  EXPECT_FALSE(Within(std::vector{kNaN}, std::vector{1.0}, 1e300));
  EXPECT_FALSE(Within(std::vector{1.0}, std::vector{kNaN}, 1e300));
  EXPECT_FALSE(Within(std::vector{kNaN}, std::vector{kNaN}, 1e300));
  EXPECT_FALSE(Within(std::vector{1.0}, std::vector{2.0}, kNaN));
}

TEST(Within, RejectsInfinities) {
  EXPECT_FALSE(Within(std::vector{kInfinity}, std::vector{1.0}, 1e300));
  EXPECT_FALSE(Within(std::vector{kInfinity}, std::vector{kInfinity}, 1e300));
  EXPECT_FALSE(Within(std::vector{1.0}, std::vector{2.0}, kInfinity));
}

TEST(Within, RejectsASignFlip) { EXPECT_FALSE(Within(std::vector{-1e-3}, std::vector{1e-3}, 1e-3)); }

TEST(Within, FindsOneBadElementAmongAMillionAndNamesIt) {
  const std::vector<float> expected = Random(1).Floats(1'000'000);
  std::vector<float> actual = expected;
  EXPECT_TRUE(Within(actual, expected, 0));
  for (const size_t place : {size_t{0}, size_t{654'321}, expected.size() - 1}) {
    actual[place] += 1e-3f;
    const ::testing::AssertionResult result = Within(actual, expected, 0.9e-3);
    EXPECT_FALSE(result);
    EXPECT_NE(std::string(result.message()).find(fmt::format("element {} is", place)), std::string::npos)
        << result.message();
    actual[place] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(Within(actual, expected, 0.9e-3));
    actual[place] = expected[place];
  }
}

TEST(Within, RejectsWhatCannotBeCompared) {
  const std::vector<double> one = {1}, two = {1, 1};
  EXPECT_FALSE(Within(one, two, 1));
  EXPECT_FALSE(Within(two, one, 1));
  EXPECT_FALSE(Within(two, two, 1));
  EXPECT_TRUE(Within(std::vector<double>(), std::vector<double>(), 0));
}

TEST(WithinEach, UsesTheBoundOfEachElement) {
  const std::vector<double> actual = {1.0, 100.0}, expected = {1.0, 101.0};
  EXPECT_TRUE(WithinEach(actual, expected, [](size_t i) { return i == 1 ? 1.0 : 0.0; }));
  EXPECT_FALSE(WithinEach(actual, expected, [](size_t i) { return i == 0 ? 1.0 : 0.0; }));
}

TEST(WithinEach, SeesTheLastBitOfADouble) {
  const std::vector<double> actual = {std::nextafter(std::numbers::pi, 4.0)}, expected = {std::numbers::pi};
  EXPECT_FALSE(WithinEach(actual, expected, [](size_t) { return 0x1p-52; }));
  EXPECT_TRUE(WithinEach(actual, expected, [](size_t) { return 0x1p-51; }));
}

TEST(SameBits, TellsWhatEqualityDoesNot) {
  EXPECT_FALSE(SameBits(std::vector{0.0}, std::vector{-0.0}));
  EXPECT_FALSE(SameBits(std::vector{1.0f}, std::vector{std::nextafter(1.0f, 2.0f)}));
  EXPECT_TRUE(SameBits(std::vector{kNaN, kInfinity}, std::vector{kNaN, kInfinity}));
  EXPECT_FALSE(SameBits(std::vector{kNaN}, std::vector{-kNaN}));
  EXPECT_FALSE(SameBits(std::vector{1.0}, std::vector{1.0, 2.0}));
  const std::vector<double> same = {1.0};
  EXPECT_FALSE(SameBits(same, same));
}

TEST(RowsSumToOne, RejectsEachKindOfBadRow) {
  EXPECT_TRUE(RowsSumToOne(std::vector{1.0f, 0.0f, 0.25f, 0.75f}, 2));
  EXPECT_FALSE(RowsSumToOne(std::vector{1.0f, 0.0f, 0.25f, 0.750001f}, 2));
  EXPECT_FALSE(RowsSumToOne(std::vector{1.0f, 0.0f, 0.25f, std::numeric_limits<float>::quiet_NaN()}, 2));
  EXPECT_FALSE(RowsSumToOne(std::vector{0.0f, 0.0f}, 2));
  EXPECT_FALSE(RowsSumToOne(std::vector{1.0f, 0.0f, 1.0f}, 2));
  EXPECT_FALSE(RowsSumToOne(std::vector<float>(), 2));
}

TEST(Guarded, StartsAsNaNAndSeesAWriteInFront) {
  Guarded<float> buffer(33);
  for (const float x : buffer.span()) EXPECT_TRUE(std::isnan(x));
  buffer.data()[0] = buffer.data()[32] = 1;
  EXPECT_TRUE(buffer.Intact());
  reinterpret_cast<std::byte*>(buffer.data())[-1] = std::byte{0};
  EXPECT_FALSE(buffer.Intact());
}

// A read in front or behind gives NaN, which arithmetic changes into another one.
TEST(Guarded, IsNaNAround) {
  const auto check = []<typename Value>(Guarded<Value>& buffer, std::ptrdiff_t place) {
    Value* const data = buffer.data();
    EXPECT_TRUE(std::isnan(data[place])) << place;
    EXPECT_TRUE(buffer.Intact());
    data[place] += 0;
    EXPECT_FALSE(buffer.Intact()) << place;
  };
  for (const std::ptrdiff_t place : {-1, -2, -16, 33, 34}) {
    Guarded<float> floats(33, kOddStart);
    Guarded<double> doubles(33, kOddStart);
    check(floats, place);
    check(doubles, place);
  }
}

TEST(Guarded, StartsOneElementBehindAnAlignedAddressWhenAsked) {
  for (const size_t count : {0, 1, 16, 33, 1024}) {
    Guarded<float> buffer(count, kOddStart);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, sizeof(float));
    EXPECT_TRUE(buffer.Intact());
    reinterpret_cast<std::byte*>(buffer.data() + count)[0] = std::byte{0};
    EXPECT_FALSE(buffer.Intact());
  }
}

TEST(GuardedDeathTest, EndsAtAnUnreadablePage) {
  Guarded<float> buffer(33);
  EXPECT_DEATH(
      {
        volatile float x = buffer.data()[33];
        (void)x;
      },
      "");
}

TEST(GuardedDeathTest, StartsBehindAnUnreadablePageWhenAsked) {
  for (const size_t count : {1, 33, 5000}) {
    Guarded<float> buffer(count, kPageStart);
    buffer.data()[0] = buffer.data()[count - 1] = 1;
    EXPECT_TRUE(buffer.Intact());
    EXPECT_DEATH(
        {
          volatile float x = buffer.data()[-1];
          (void)x;
        },
        "");
    buffer.data()[count] = 0;
    EXPECT_FALSE(buffer.Intact());
  }
}

TEST(RandomTest, RepeatsForASeedAndCoversItsRange) {
  EXPECT_TRUE(SameBits(Random(7).Floats(1000), Random(7).Floats(1000)));
  EXPECT_FALSE(SameBits(Random(7).Floats(1000), Random(8).Floats(1000)));
  float lowest = 1, highest = -1;
  for (const float x : Random(9).Floats(10'000, -1, 1)) {
    lowest = std::min(lowest, x);
    highest = std::max(highest, x);
  }
  EXPECT_TRUE(lowest >= -1 && lowest < -0.99f && highest > 0.99f && highest <= 1);
  for (const float x : Random(10).Magnitudes(1000, -20, 20))
    EXPECT_TRUE(std::abs(x) >= 0x1p-20f && std::abs(x) <= 0x1p20f);
}

// The generator is the standard's: its 10,000th number is fixed there.
TEST(RandomTest, IsTheSameOnEveryMachine) {
  Random random(5489);
  for (int i = 0; i < 9999; ++i) random.Bits();
  EXPECT_EQ(random.Bits(), 9981545732273789042u);
}

}  // namespace
}  // namespace octavo::test
