// Layer norm against the same formula in another arrangement, in long double, within the rounding of its own operations.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/check/guarded.h"
#include "kernels/reference/layer_norm.h"
#include "tests/testing/compare.h"

#include "tests/testing/random.h"
#include "tests/testing/vector_kernel.h"

namespace octavo::test {
namespace {

using check::Guarded;

constexpr float kEpsilon = 1e-5f;

struct Expected {
  std::vector<long double> value;
  std::vector<long double> bound;  // for a unit roundoff of 1
};

// The variance comes from the differences of all pairs, Σ_{i<j} (x_i - x_j)² / n²: no mean is involved.
// The bound: the mean is wrong by at most (n + 1)·u·mean|x|, which the division by the deviation and the gain pass on, also through the
// deviation; all else is relative to the result's two terms.
template <typename Value>
Expected Formula(const std::vector<Value>& x, size_t width, const std::vector<float>& gain,
                 const std::vector<float>& bias, float epsilon) {
  Expected expected;
  const auto n = static_cast<long double>(width);
  for (size_t row = 0; row < x.size(); row += width) {
    long double sum = 0, magnitude = 0, pairs = 0;
    for (size_t i = 0; i < width; ++i) {
      sum += x[row + i];
      magnitude += std::abs(static_cast<long double>(x[row + i])) / n;
      for (size_t j = i + 1; j < width; ++j) {
        const long double difference = static_cast<long double>(x[row + i]) - x[row + j];
        pairs += difference * difference;
      }
    }
    const long double deviation = std::sqrt(pairs / (n * n) + epsilon);
    for (size_t f = 0; f < width; ++f) {
      const long double z = (x[row + f] - sum / n) / deviation;
      const long double scaled = std::abs(z * gain[f]);
      expected.value.push_back(z * gain[f] + bias[f]);
      expected.bound.push_back((n + 1) * magnitude / deviation * std::abs(gain[f]) * (1 + std::abs(z)) +
                               (n / 2 + 6) * scaled + std::abs(expected.value.back()));
    }
  }
  return expected;
}

template <typename Value>
class LayerNorm : public ::testing::Test {
 protected:
  static ::testing::AssertionResult Agrees(std::span<const Value> out, const Expected& expected) {
    const long double roundoff = std::numeric_limits<Value>::epsilon() / 2;
    return WithinEach(out, expected.value, [&](size_t i) { return roundoff * expected.bound[i]; });
  }
  // Normalizes rows of this width and compares.
  static void Check(const std::vector<float>& input, size_t width, float epsilon, uint64_t seed) {
    const std::vector<Value> x = As<Value>(input);
    Random random(seed);
    const std::vector<float> gain = random.Floats(width, -2, 2), bias = random.Floats(width);
    Guarded<Value> out(x.size());
    reference::LayerNorm(x.data(), x.size() / width, width, gain.data(), bias.data(), epsilon, out.data());
    EXPECT_TRUE(Agrees(out.span(), Formula(x, width, gain, bias, epsilon))) << "width " << width;
    EXPECT_TRUE(out.Intact());
  }
};
using Values = ::testing::Types<double, float>;
TYPED_TEST_SUITE(LayerNorm, Values);

TYPED_TEST(LayerNorm, KnownValues) {
  const std::vector<TypeParam> x = {1, 2, 3, 6, -1, -1, 1, 1};
  const std::vector<float> gain = {1, 2, 1, 1}, bias = {0, 0, 10, 0};
  std::vector<TypeParam> out(8);
  reference::LayerNorm(x.data(), 2, 4, gain.data(), bias.data(), 0.0f, out.data());
  const double s = std::sqrt(3.5);
  EXPECT_TRUE(Within(out, std::vector{-2 / s, -2 / s, 10.0, 3 / s, -1.0, -2.0, 11.0, 1.0}, 1e-6));
}

TYPED_TEST(LayerNorm, EveryWidth) {
  for (const size_t width : OddSizes()) this->Check(Random(width).Floats(3 * width, -4, 4), width, kEpsilon, width);
}

TYPED_TEST(LayerNorm, EveryEpsilon) {
  for (const float epsilon : {0.0f, 1e-12f, 1e-6f, 1e-5f, 1e-3f, 0.5f, 100.0f}) {
    for (const size_t width : {3, 36, 128}) this->Check(Random(width).Floats(3 * width, -2, 2), width, epsilon, width);
  }
}

// One pass over x and x² would leave nothing of the variance here.
TYPED_TEST(LayerNorm, LargeOffset) {
  for (const size_t width : {7, 16, 33, 384}) {
    std::vector<float> x = Random(width).Floats(2 * width);
    for (float& value : x) value += 10'000;
    this->Check(x, width, kEpsilon, width);
  }
}

TYPED_TEST(LayerNorm, MixedMagnitudes) {
  for (const size_t width : {3, 36, 65})
    this->Check(Random(width).Magnitudes(4 * width, -40, 20), width, 1e-12f, width);
}

TYPED_TEST(LayerNorm, EpsilonRulesSmallInputs) {
  // Variance 1e-6 and epsilon 3e-6: the deviation is 2e-3.
  const std::vector<TypeParam> x = {TypeParam{1e-3}, TypeParam{-1e-3}};
  const std::vector<float> gain = {1, 1}, bias = {0, 0};
  std::vector<TypeParam> out(2);
  reference::LayerNorm(x.data(), 1, 2, gain.data(), bias.data(), 3e-6f, out.data());
  EXPECT_TRUE(Within(out, std::vector{0.5, -0.5}, 1e-6));
}

TYPED_TEST(LayerNorm, ConstantRowGivesTheBias) {
  const std::vector<float> gain = {3, -5, 7}, bias = {0.5f, -0.25f, 8};
  const std::vector<TypeParam> x = {3, 3, 3};  // the sum divides exactly
  std::vector<TypeParam> out(3);
  reference::LayerNorm(x.data(), 1, 3, gain.data(), bias.data(), kEpsilon, out.data());
  EXPECT_TRUE(SameBits(out, As<TypeParam>(bias)));
  // Width 1 is always constant.
  reference::LayerNorm(x.data(), 3, 1, gain.data(), bias.data(), kEpsilon, out.data());
  EXPECT_TRUE(SameBits(out, std::vector<TypeParam>(3, 0.5)));
}

TYPED_TEST(LayerNorm, WorksInPlace) {
  constexpr size_t kWidth = 36;
  const std::vector<TypeParam> x = As<TypeParam>(Random(5).Floats(3 * kWidth));
  const std::vector<float> gain = Random(6).Floats(kWidth), bias = Random(7).Floats(kWidth);
  std::vector<TypeParam> apart(x.size()), in_place = x;
  reference::LayerNorm(x.data(), 3, kWidth, gain.data(), bias.data(), kEpsilon, apart.data());
  reference::LayerNorm(in_place.data(), 3, kWidth, gain.data(), bias.data(), kEpsilon, in_place.data());
  EXPECT_TRUE(SameBits(in_place, apart));
}

// A NaN spoils its own row and no other.
TYPED_TEST(LayerNorm, RowsDoNotMix) {
  constexpr size_t kWidth = 9;
  std::vector<TypeParam> x = As<TypeParam>(Random(8).Floats(3 * kWidth));
  const std::vector<float> gain(kWidth, 1.0f), bias(kWidth, 0.0f);
  std::vector<TypeParam> clean(x.size()), spoilt(x.size());
  reference::LayerNorm(x.data(), 3, kWidth, gain.data(), bias.data(), kEpsilon, clean.data());
  x[kWidth + 4] = std::numeric_limits<TypeParam>::quiet_NaN();
  reference::LayerNorm(x.data(), 3, kWidth, gain.data(), bias.data(), kEpsilon, spoilt.data());
  for (size_t f = 0; f < kWidth; ++f) EXPECT_TRUE(std::isnan(spoilt[kWidth + f]));
  for (const size_t row : {0, 2}) {
    EXPECT_TRUE(
        SameBits(std::span(spoilt).subspan(row * kWidth, kWidth), std::span(clean).subspan(row * kWidth, kWidth)));
  }
}

TEST(VectorKernel, AgreesWithTheReferenceOnEveryTarget) { ExpectVectorKernel("layer_norm"); }

}  // namespace
}  // namespace octavo::test
