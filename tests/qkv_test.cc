// The fused query, key, value product: three slices of one matrix product, laid down with a stride.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/check/guarded.h"
#include "kernels/reference/matmul.h"
#include "kernels/reference/qkv.h"
#include "tests/testing/compare.h"

#include "tests/testing/random.h"
#include "tests/testing/vector_kernel.h"

namespace octavo::test {
namespace {

using check::Guarded;

template <typename Value>
class Qkv : public ::testing::Test {};
using Values = ::testing::Types<double, float>;
TYPED_TEST_SUITE(Qkv, Values);

TYPED_TEST(Qkv, KnownValues) {
  const std::vector<TypeParam> x = {1, 2};
  const std::vector<float> weight = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60}, bias = {0, 0, 100, 100, -1, -1};
  std::vector<TypeParam> q(2), k(2), v(2);
  reference::Qkv(x.data(), 1, 2, weight.data(), bias.data(), 2, q.data(), k.data(), v.data());
  EXPECT_TRUE(SameBits(q, std::vector<TypeParam>{21, 42}));
  EXPECT_TRUE(SameBits(k, std::vector<TypeParam>{163, 184}));
  EXPECT_TRUE(SameBits(v, std::vector<TypeParam>{104, 125}));
}

// All three parts against sums in long double; what lies between the rows is not touched.
TYPED_TEST(Qkv, EveryWidthAndStride) {
  for (const size_t width : {1, 2, 3, 8, 16, 33, 36, 65}) {
    for (const size_t gap : {0, 5}) {
      constexpr size_t kRows = 4;
      const size_t stride = width + gap;
      Random random(width + gap);
      const std::vector<TypeParam> x = As<TypeParam>(random.Floats(kRows * width));
      const std::vector<float> weight = random.Floats(width * 3 * width), bias = random.Floats(3 * width);
      Guarded<TypeParam> q(kRows * stride), k(kRows * stride), v(kRows * stride);
      Guarded<TypeParam>* const parts[3] = {&q, &k, &v};
      reference::Qkv(x.data(), kRows, width, weight.data(), bias.data(), stride, q.data(), k.data(), v.data());
      for (size_t column = 0; column < 3 * width; ++column) {
        for (size_t r = 0; r < kRows; ++r) {
          long double sum = bias[column], magnitude = std::abs(sum);
          for (size_t i = 0; i < width; ++i) {
            const long double term = static_cast<long double>(x[r * width + i]) * weight[i * 3 * width + column];
            sum += term;
            magnitude += std::abs(term);
          }
          const TypeParam actual = parts[column / width]->span()[r * stride + column % width];
          const long double bound = static_cast<long double>(width + 1) * std::numeric_limits<TypeParam>::epsilon() / 2;
          EXPECT_TRUE(std::abs(actual - sum) <= bound * magnitude) << "width " << width << ", column " << column;
        }
      }
      for (Guarded<TypeParam>* part : parts) {
        EXPECT_TRUE(part->Intact());
        for (size_t i = 0; i < part->size(); ++i) EXPECT_EQ(std::isnan(part->span()[i]), i % stride >= width);
      }
    }
  }
}

// The promise of one order of summation makes the fused product equal to the plain one, bit for bit.
TYPED_TEST(Qkv, EqualsMatMulInOneTable) {
  constexpr size_t kWidth = 36, kRows = 17;
  Random random(2);
  const std::vector<TypeParam> x = As<TypeParam>(random.Floats(kRows * kWidth));
  const std::vector<float> weight = random.Floats(kWidth * 3 * kWidth), bias = random.Floats(3 * kWidth);
  for (const float* bias_or_null : {bias.data(), static_cast<const float*>(nullptr)}) {
    Guarded<TypeParam> table(kRows * 3 * kWidth), expected(kRows * 3 * kWidth);
    TypeParam* q = table.data();
    reference::Qkv(x.data(), kRows, kWidth, weight.data(), bias_or_null, 3 * kWidth, q, q + kWidth, q + 2 * kWidth);
    reference::MatMul(x.data(), kRows, kWidth, weight.data(), bias_or_null, 3 * kWidth, expected.data());
    EXPECT_TRUE(SameBits(table.span(), expected.span()));
  }
}

TEST(VectorKernel, AgreesWithTheReferenceOnEveryTarget) { ExpectVectorKernel("qkv"); }

}  // namespace
}  // namespace octavo::test
