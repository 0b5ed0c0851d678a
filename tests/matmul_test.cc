// Matrix products and the residual addition against sums in long double, within (inputs + 1) · u · Σ|terms|, at all odd sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/check/case.h"
#include "engine/check/guarded.h"
#include "kernels/matmul.h"
#include "kernels/reference/matmul.h"
#include "tests/testing/compare.h"

#include "tests/testing/random.h"
#include "tests/testing/targets.h"
#include "tests/testing/vector_kernel.h"

namespace octavo::test {
namespace {

using check::Guarded;

struct Sums {
  std::vector<long double> value, magnitude;  // Σ terms, Σ |terms|
};

template <typename Value>
Sums Formula(const std::vector<Value>& x, size_t inputs, const std::vector<float>& weight, const float* bias,
             size_t outputs) {
  Sums sums;
  for (size_t row = 0; row < x.size(); row += inputs) {
    for (size_t n = 0; n < outputs; ++n) {
      long double value = bias ? bias[n] : 0, magnitude = std::abs(value);
      for (size_t k = 0; k < inputs; ++k) {
        const long double term = static_cast<long double>(x[row + k]) * weight[k * outputs + n];
        value += term;
        magnitude += std::abs(term);
      }
      sums.value.push_back(value);
      sums.magnitude.push_back(magnitude);
    }
  }
  return sums;
}

template <typename Value>
class MatMul : public ::testing::Test {
 protected:
  // A product may round once, and its sum once more.
  static void Check(const std::vector<float>& input, size_t inputs, const std::vector<float>& weight,
                    const std::vector<float>& bias, size_t outputs) {
    const std::vector<Value> x = As<Value>(input);
    const size_t rows = x.size() / inputs;
    const float* bias_or_null = bias.empty() ? nullptr : bias.data();
    Guarded<Value> out(rows * outputs);
    reference::MatMul(x.data(), rows, inputs, weight.data(), bias_or_null, outputs, out.data());
    const Sums sums = Formula(x, inputs, weight, bias_or_null, outputs);
    const long double scale = static_cast<long double>(inputs + 1) * std::numeric_limits<Value>::epsilon() / 2;
    EXPECT_TRUE(WithinEach(out.span(), sums.value, [&](size_t i) { return scale * sums.magnitude[i]; }))
        << rows << " rows, " << inputs << " inputs, " << outputs << " outputs";
    EXPECT_TRUE(out.Intact());
  }
};
using Values = ::testing::Types<double, float>;
TYPED_TEST_SUITE(MatMul, Values);

TYPED_TEST(MatMul, KnownValues) {
  const std::vector<TypeParam> x = {1, 2, 3, 4};
  const std::vector<float> weight = {1, 10, 100, 2, 20, 200}, bias = {0.5f, 0, -1};
  std::vector<TypeParam> out(6);
  reference::MatMul(x.data(), 2, 2, weight.data(), bias.data(), 3, out.data());
  EXPECT_TRUE(SameBits(out, std::vector<TypeParam>{5.5, 50, 499, 11.5, 110, 1099}));
}

TYPED_TEST(MatMul, AllOddSizes) {
  for (const size_t inputs : OddSizes()) {
    for (const size_t outputs : OddSizes()) {
      Random random(inputs * 1000 + outputs);
      const std::vector<float> weight = random.Floats(inputs * outputs), bias = random.Floats(outputs);
      for (const size_t rows : {1, 2, 7, 16, 17})
        this->Check(random.Floats(rows * inputs), inputs, weight, bias, outputs);
    }
  }
}

TYPED_TEST(MatMul, NoBiasMeansZeros) {
  Random random(1);
  const std::vector<float> weight = random.Floats(33 * 9);
  this->Check(random.Floats(5 * 33), 33, weight, {}, 9);
}

TYPED_TEST(MatMul, CancellingMagnitudes) {
  for (const size_t inputs : {15, 64, 129}) {
    Random random(inputs);
    const std::vector<float> weight = random.Magnitudes(inputs * 7, -15, 15), bias = random.Magnitudes(7, -15, 15);
    this->Check(random.Magnitudes(4 * inputs, -15, 15), inputs, weight, bias, 7);
  }
}

// The order of the sum is part of the contract: from the bias, by rising k. 2^p + 1 is a tie that rounds back to 2^p.
TYPED_TEST(MatMul, SumsFromTheBiasInInputOrder) {
  const auto big = static_cast<float>(1 / std::numeric_limits<TypeParam>::epsilon());
  const TypeParam twice = TypeParam{2} * big;
  const std::vector<TypeParam> ones = {1, 1}, cancel = {1, -1, 1};
  const std::vector<float> weight = {1, 1}, bias = {2 * big}, cancelling = {2 * big, 2 * big, 1};
  TypeParam out = 0;
  reference::MatMul(ones.data(), 1, 2, weight.data(), bias.data(), 1, &out);
  EXPECT_EQ(out, twice);  // 1 + 1 first would give twice + 2
  const std::vector<float> one = {1};
  reference::MatMul(cancel.data(), 1, 3, cancelling.data(), one.data(), 1, &out);
  EXPECT_EQ(out, 1);  // the bias is lost in the first sum; the last input is not
}

TYPED_TEST(MatMul, WritesNothingForNoRowsAndTheBiasForNoInputs) {
  const std::vector<float> weight = {1}, bias = {3, 4};
  std::vector<TypeParam> out = {7, 7};
  reference::MatMul<TypeParam>(nullptr, 0, 5, weight.data(), bias.data(), 2, out.data());
  EXPECT_TRUE(SameBits(out, std::vector<TypeParam>{7, 7}));
  reference::MatMul<TypeParam>(nullptr, 1, 0, weight.data(), bias.data(), 2, out.data());
  EXPECT_TRUE(SameBits(out, std::vector<TypeParam>{3, 4}));
}

TYPED_TEST(MatMul, RowsDoNotMix) {
  Random random(3);
  const std::vector<float> weight = random.Floats(8 * 5);
  std::vector<TypeParam> x = As<TypeParam>(random.Floats(3 * 8)), clean(15), spoilt(15);
  reference::MatMul(x.data(), 3, 8, weight.data(), nullptr, 5, clean.data());
  x[8] = std::numeric_limits<TypeParam>::quiet_NaN();
  reference::MatMul(x.data(), 3, 8, weight.data(), nullptr, 5, spoilt.data());
  for (size_t i = 0; i < 15; ++i) EXPECT_EQ(std::isnan(spoilt[i]), i / 5 == 1) << i;
  EXPECT_TRUE(SameBits(std::span(spoilt).last(5), std::span(clean).last(5)));
}

TYPED_TEST(MatMul, AddResidualAddsInPlace) {
  for (const size_t count : OddSizes()) {
    Random random(count);
    const std::vector<TypeParam> before = As<TypeParam>(random.Floats(count)), y = As<TypeParam>(random.Floats(count));
    Guarded<TypeParam> x(before);
    reference::AddResidual(y.data(), count, x.data());
    std::vector<TypeParam> expected;
    for (size_t i = 0; i < count; ++i) {
      expected.push_back(static_cast<TypeParam>(static_cast<long double>(before[i]) + y[i]));
    }
    EXPECT_TRUE(SameBits(x.span(), expected));
    EXPECT_TRUE(x.Intact());
  }
}

TEST(VectorKernel, AgreesWithTheReferenceOnEveryTarget) { ExpectVectorKernel("matmul"); }

// The cases above draw their sizes; here every pair of odd ones meets rows in the lanes and outputs in the lanes.
TEST(VectorMatMul, AllOddSizes) {
  for (const size_t inputs : OddSizes()) {
    for (const size_t outputs : OddSizes()) {
      Random random(inputs * 1000 + outputs);
      const std::vector<float> weight = random.Floats(inputs * outputs), bias = random.Floats(outputs);
      Guarded<float> packed(PackedFloats(inputs, outputs), kPanelAlignment);
      PackMatrix(weight.data(), inputs, outputs, packed.data());
      for (const size_t rows : {1, 2, 3, 4, 5, 16, 17, 33}) {
        const std::vector<float> input = random.Floats(rows * inputs);
        const Sums sums = Formula(input, inputs, weight, bias.data(), outputs);
        check::Panels x(input, rows, inputs);
        for (const std::string& target : TestedTargets()) {
          ASSERT_TRUE(UseTarget(target));
          check::Panels out(rows, outputs);
          octavo::MatMul(x.data(), rows, {packed.data(), bias.data(), inputs, outputs}, Epilogue::kStore, out.data());
          const long double roundings = check::TargetSlack() * (static_cast<double>(inputs) + kMatMulBound);
          std::vector<float> plain;
          for (size_t r = 0; r < rows; ++r) {
            for (size_t n = 0; n < outputs; ++n) plain.push_back(out.at(r, n));
          }
          EXPECT_TRUE(WithinEach(plain, sums.value, [&](size_t i) { return roundings * 0x1p-24 * sums.magnitude[i]; }))
              << target << ": " << rows << " rows, " << inputs << " inputs, " << outputs << " outputs";
          EXPECT_TRUE(out.Intact());
        }
      }
    }
  }
  UseBestTarget();
}

// With x = w = 1 + 2^-12 the square ends in 2^-24, which only a fused multiply-add keeps beside the bias: each target's own kernels run.
TEST(VectorMatMul, IsFusedWhereTheTargetIs) {
  const float one = 1 + 0x1p-12f, bias = -(1 + 0x1p-11f);
  Guarded<float> packed(PackedFloats(1, 1), kPanelAlignment);
  PackMatrix(&one, 1, 1, packed.data());
  for (const std::string& target : TestedTargets()) {
    ASSERT_TRUE(UseTarget(target));
    for (const size_t rows : {1, 16}) {
      check::Panels x(std::vector<float>(rows, one), rows, 1), out(rows, 1);
      octavo::MatMul(x.data(), rows, {packed.data(), &bias, 1, 1}, Epilogue::kStore, out.data());
      EXPECT_EQ(out.at(rows - 1, 0), HasFusedMultiplyAdd(target) ? 0x1p-24f : 0.0f)
          << target << ", " << rows << " rows";
    }
  }
  UseBestTarget();
}

// Outputs outside of a range of tiles are left alone.
TEST(VectorMatMul, WritesItsTilesAlone) {
  constexpr size_t kInputs = 5, kOutputs = 65;
  Random random(1);
  const std::vector<float> weight = random.Floats(kInputs * kOutputs), bias = random.Floats(kOutputs);
  Guarded<float> packed(PackedFloats(kInputs, kOutputs), kPanelAlignment);
  PackMatrix(weight.data(), kInputs, kOutputs, packed.data());
  for (const std::string& target : TestedTargets()) {
    ASSERT_TRUE(UseTarget(target));
    for (const size_t rows : {1, 17, 33}) {
      check::Panels x(random.Floats(rows * kInputs), rows, kInputs), out(rows, kOutputs);
      octavo::MatMul(x.data(), rows, {packed.data(), bias.data(), kInputs, kOutputs}, Epilogue::kStore, out.data(),
                     {1, 3});
      for (size_t r = 0; r < rows; ++r) {
        for (size_t n = 0; n < kOutputs; ++n) {
          EXPECT_EQ(std::isnan(out.at(r, n)), n < TileBegin(kOutputs, 1) || n >= TileBegin(kOutputs, 3)) << target;
        }
      }
    }
  }
  UseBestTarget();
}

}  // namespace
}  // namespace octavo::test
