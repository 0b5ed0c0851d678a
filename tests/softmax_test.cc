// Softmax and log-softmax against exponentials in long double without the largest subtracted, and where that would overflow.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "engine/check/case.h"
#include "engine/check/guarded.h"
#include "kernels/reference/softmax.h"
#include "kernels/softmax.h"
#include "tests/testing/compare.h"

#include "tests/testing/random.h"
#include "tests/testing/vector_kernel.h"

namespace octavo::test {
namespace {

using check::Guarded;

template <typename Value>
class Softmax : public ::testing::Test {
 protected:
  static constexpr long double kRoundoff = std::numeric_limits<Value>::epsilon() / 2;

  static std::vector<Value> Run(const std::vector<Value>& x, size_t rows = 1) {
    std::vector<Value> out(x.size());
    reference::Softmax(x.data(), rows, x.size() / rows, out.data());
    return out;
  }
  static std::vector<Value> RunLog(const std::vector<Value>& x, size_t rows = 1) {
    std::vector<Value> out(x.size());
    reference::LogSoftmax(x.data(), rows, x.size() / rows, out.data());
    return out;
  }
};
using Values = ::testing::Types<double, float>;
TYPED_TEST_SUITE(Softmax, Values);

TYPED_TEST(Softmax, KnownValues) {
  const auto log3 = static_cast<TypeParam>(std::log(3.0L));
  EXPECT_TRUE(Within(this->Run({0, log3}), std::vector{0.25, 0.75}, 4 * this->kRoundoff));
  EXPECT_TRUE(Within(this->RunLog({0, log3}), std::vector{-std::log(4.0), std::log(0.75)}, 8 * this->kRoundoff));
}

// The exponent's argument is rounded once, relative to itself; the sum n - 1 times; exp, division and logarithm once each.
TYPED_TEST(Softmax, EveryCount) {
  for (const size_t count : OddSizes()) {
    constexpr size_t kRows = 3;
    const std::vector<TypeParam> x = As<TypeParam>(Random(count).Floats(kRows * count, -20, 20));
    std::vector<long double> expected, logs;
    for (size_t row = 0; row < x.size(); row += count) {
      long double sum = 0;
      for (size_t i = 0; i < count; ++i) sum += std::exp(static_cast<long double>(x[row + i]));
      for (size_t i = 0; i < count; ++i) expected.push_back(std::exp(static_cast<long double>(x[row + i])) / sum);
      for (size_t i = 0; i < count; ++i) logs.push_back(x[row + i] - std::log(sum));
    }
    Guarded<TypeParam> out(x.size()), log_out(x.size());
    reference::Softmax(x.data(), kRows, count, out.data());
    reference::LogSoftmax(x.data(), kRows, count, log_out.data());
    const long double roundings = static_cast<long double>(count) + 40 + 4;
    EXPECT_TRUE(
        WithinEach(out.span(), expected, [&](size_t i) { return 2 * roundings * this->kRoundoff * expected[i]; }));
    EXPECT_TRUE(WithinEach(log_out.span(), logs,
                           [&](size_t i) { return this->kRoundoff * (roundings + 4 * std::abs(logs[i])); }));
    EXPECT_TRUE(RowsSumToOne(out.span(), count));
    EXPECT_TRUE(out.Intact() && log_out.Intact());
  }
}

TYPED_TEST(Softmax, OneEntryIsCertain) {
  EXPECT_TRUE(SameBits(this->Run({-5}), std::vector<TypeParam>{1}));
  EXPECT_TRUE(SameBits(this->RunLog({-5}), std::vector<TypeParam>{0}));
}

TYPED_TEST(Softmax, AllEqualIsUniform) {
  for (const TypeParam value : {TypeParam{0}, TypeParam{-1e30f}, TypeParam{3e38f}}) {
    EXPECT_TRUE(SameBits(this->Run({value, value, value, value}), std::vector<TypeParam>(4, 0.25)));
  }
}

TYPED_TEST(Softmax, ExtremesNeitherOverflowNorMakeNaN) {
  const std::vector<TypeParam> x = {-3e38f, 0, 3e38f, 1e30f};
  EXPECT_TRUE(SameBits(this->Run(x), std::vector<TypeParam>{0, 0, 1, 0}));
  EXPECT_TRUE(SameBits(this->Run({-1000, -1001}), this->Run({0, -1})));
  EXPECT_EQ(this->RunLog({0, TypeParam{-1e30f}})[1], TypeParam{-1e30f});
  EXPECT_EQ(this->RunLog({0, TypeParam{-1e30f}})[0], 0);
}

// Adding a constant changes nothing where the sums are exact.
TYPED_TEST(Softmax, ShiftsCancel) {
  std::vector<TypeParam> x, shifted;
  for (const float value : Random(3).Floats(65, -8, 8)) {
    x.push_back(std::round(value * 1024) / 1024);
    shifted.push_back(x.back() + 512);
  }
  EXPECT_TRUE(SameBits(this->Run(x), this->Run(shifted)));
}

TYPED_TEST(Softmax, WorksInPlace) {
  const std::vector<TypeParam> x = As<TypeParam>(Random(4).Floats(4 * 33, -5, 5));
  std::vector<TypeParam> in_place = x;
  reference::Softmax(in_place.data(), 4, 33, in_place.data());
  EXPECT_TRUE(SameBits(in_place, this->Run(x, 4)));
  in_place = x;
  reference::LogSoftmax(in_place.data(), 4, 33, in_place.data());
  EXPECT_TRUE(SameBits(in_place, this->RunLog(x, 4)));
}

TYPED_TEST(Softmax, RowsDoNotMix) {
  std::vector<TypeParam> x = As<TypeParam>(Random(5).Floats(3 * 11));
  const std::vector<TypeParam> clean = this->Run(x, 3);
  x[11] = std::numeric_limits<TypeParam>::quiet_NaN();
  const std::vector<TypeParam> spoilt = this->Run(x, 3);
  EXPECT_TRUE(SameBits(std::span(spoilt).first(11), std::span(clean).first(11)));
  EXPECT_TRUE(SameBits(std::span(spoilt).last(11), std::span(clean).last(11)));
}

TEST(VectorKernel, AgreesWithTheReferenceOnEveryTarget) { ExpectVectorKernel("softmax"); }

// Whatever is not finite, wherever it stands and whichever id is asked for: the row has no log-probability, and its neighbours have theirs.
// An infinity below would by itself only be a probability of 0.
TEST(VectorKernel, ARowThatIsNotFiniteHasNoLogProbability) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr size_t kCount = 11, kBad = 6;
  for (const std::string& target : RunnableTargets()) {
    SCOPED_TRACE(target);
    UseTarget(target);
    check::Panels x(Random(6).Floats(kPanelRows * kCount, -4, 4), kPanelRows, kCount);
    std::vector<int32_t> ids(kPanelRows);
    std::vector<float> clean(kPanelRows), spoilt(kPanelRows);
    for (int32_t id = 0; id < static_cast<int32_t>(kCount); ++id) {
      std::fill(ids.begin(), ids.end(), id);
      LogProbabilityOf(x.data(), kPanelRows, kCount, ids.data(), clean.data());
      for (const float bad : {-kInfinity, kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
        for (size_t at = 0; at < kCount; ++at) {
          const float before = std::exchange(x.at(kBad, at), bad);
          LogProbabilityOf(x.data(), kPanelRows, kCount, ids.data(), spoilt.data());
          x.at(kBad, at) = before;
          EXPECT_TRUE(std::isnan(spoilt[kBad])) << bad << " at " << at << ", id " << id;
          spoilt[kBad] = clean[kBad];
          EXPECT_TRUE(SameBits(spoilt, clean));
        }
      }
    }
  }
  UseBestTarget();
}

}  // namespace
}  // namespace octavo::test
