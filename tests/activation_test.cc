// GELU by erf and by tanh, and relu: values from 40-digit arithmetic, sweeps against long double, and the edges of the number range.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "engine/check/guarded.h"
#include "kernels/reference/activation.h"
#include "tests/testing/compare.h"

#include "tests/testing/random.h"
#include "tests/testing/vector_kernel.h"

namespace octavo::test {
namespace {

using check::Guarded;

constexpr ActivationKind kKinds[] = {ActivationKind::kGeluErf, ActivationKind::kGeluTanh, ActivationKind::kRelu};

// The argument of tanh in kGeluTanh.
long double TanhArgument(long double x) {
  return std::sqrt(2 / std::numbers::pi_v<long double>) * (x + 0.044715L * x * x * x);
}

long double Formula(ActivationKind kind, long double x) {
  switch (kind) {
    case ActivationKind::kGeluErf:
      return x / 2 * std::erfc(-x / std::numbers::sqrt2_v<long double>);
    case ActivationKind::kGeluTanh:
      return x / (1 + std::exp(-2 * TanhArgument(x)));
    case ActivationKind::kRelu:
      return x > 0 ? x : 0;
  }
  return 0;
}

// How many roundings may show in the result, relative to it. What erfc and exp make of the rounding of their argument grows with the
// argument: d ln erfc(-y) / d ln y ≤ 2y² + 1 and d ln(1 + exp(-2u)) / d ln u ≤ 2|u|.
long double Roundings(ActivationKind kind, long double x) {
  switch (kind) {
    case ActivationKind::kGeluErf:
      return 8 + 2 * x * x;
    case ActivationKind::kGeluTanh:
      return 8 + 2 * 6 * std::abs(TanhArgument(x));
    case ActivationKind::kRelu:
      return 0;
  }
  return 0;
}

template <typename Value>
Value Activate(ActivationKind kind, Value x) {
  Value out = 0;
  reference::Activate(kind, &x, 1, &out);
  return out;
}

template <typename Value>
class Activation : public ::testing::Test {
 protected:
  static constexpr Value kLargest = std::numeric_limits<Value>::max();
};
using Values = ::testing::Types<double, float>;
TYPED_TEST_SUITE(Activation, Values);

struct Known {
  double x, erf, tanh;
};
constexpr Known kKnown[] = {
    {0.5, 0.3457312306370065518188523, 0.3457140098251439220377573},
    {1, 0.8413447460685429485852325, 0.8411919906082767047819958},
    {-1, -0.1586552539314570514147675, -0.1588080093917232952180042},
    {2, 1.954499736103641585599435, 1.954597694087775018781041},
    {-2, -0.04550026389635841440056527, -0.04540230591222498121895861},
    {-3, -0.004049694094890283579955444, -0.003637392081773018837816466},
    {-5, -0.000001433257859395969558368762, -0.0000002291796196629506045592755},
    {-8, -4.976768459417427298812796e-15, -3.107782937501111218031581e-21},
    {-12, -2.131778534493214797235405e-32, -1.635985449353481059353379e-61},
    {6, 5.999999994080474129773811, 5.999999999915603532992377},
};

TYPED_TEST(Activation, KnownValues) {
  for (const Known& known : kKnown) {
    for (const auto& [kind, value] :
         {std::pair(ActivationKind::kGeluErf, known.erf), std::pair(ActivationKind::kGeluTanh, known.tanh)}) {
      const auto roundoff = static_cast<double>(std::numeric_limits<TypeParam>::epsilon() / 2);
      const auto smallest = static_cast<double>(std::numeric_limits<TypeParam>::denorm_min());
      const double bound = static_cast<double>(Roundings(kind, known.x)) * roundoff * std::abs(value) + smallest;
      const double actual = Activate(kind, static_cast<TypeParam>(known.x));
      EXPECT_TRUE(std::abs(actual - value) <= bound) << "x " << known.x << ", " << actual << ", expected " << value;
    }
  }
}

TYPED_TEST(Activation, SweepAgainstLongDouble) {
  for (const ActivationKind kind : kKinds) {
    std::vector<TypeParam> x = As<TypeParam>(Random(1).Magnitudes(2000, -60, 8));
    for (double value = -12; value <= 12; value += 1.0 / 64) x.push_back(static_cast<TypeParam>(value));
    Guarded<TypeParam> out(x.size());
    reference::Activate(kind, x.data(), x.size(), out.data());
    std::vector<long double> expected;
    for (const TypeParam value : x) expected.push_back(Formula(kind, value));
    // Near the smallest normal number |x| / (1 + exp(…)) becomes 0 because exp overflows; the spacing there is absolute as well.
    const auto bound = [&](size_t i) {
      return Roundings(kind, x[i]) * std::numeric_limits<TypeParam>::epsilon() / 2 * std::abs(expected[i]) +
             (kind == ActivationKind::kRelu ? 0 : 64 * std::numeric_limits<TypeParam>::min());
    };
    EXPECT_TRUE(WithinEach(out.span(), expected, bound));
    EXPECT_TRUE(out.Intact());
  }
}

// g(x) - g(-x) = x for every gate that is symmetric about one half.
TYPED_TEST(Activation, GatesAreSymmetric) {
  for (const ActivationKind kind : kKinds) {
    for (double value = 0; value < 10; value += 0.03125) {
      const auto x = static_cast<TypeParam>(value);
      const TypeParam difference = Activate(kind, x) - Activate(kind, -x);
      EXPECT_TRUE(std::abs(difference - x) <= 16 * std::numeric_limits<TypeParam>::epsilon() * x) << x;
    }
  }
}

// The two GELUs differ by up to 4.73e-4, near ±2.7 (values as far from a tolerance as from each other): one for the other is seen.
TYPED_TEST(Activation, ErfAndTanhDiffer) {
  TypeParam largest = 0, where = 0;
  for (double value = -6; value <= 6; value += 1.0 / 1024) {
    const auto x = static_cast<TypeParam>(value);
    const TypeParam difference =
        std::abs(Activate(ActivationKind::kGeluErf, x) - Activate(ActivationKind::kGeluTanh, x));
    if (difference > largest) largest = difference, where = std::abs(x);
  }
  EXPECT_TRUE(largest > TypeParam{4.6e-4} && largest < TypeParam{4.8e-4}) << largest;
  EXPECT_TRUE(where > 2 && where < 3) << where;
}

TYPED_TEST(Activation, SaturatesCleanly) {
  for (const ActivationKind kind : kKinds) {
    for (const TypeParam x : {TypeParam{50}, TypeParam{1e10f}, this->kLargest / 2, this->kLargest}) {
      EXPECT_EQ(Activate(kind, x), x);
      const TypeParam negative = Activate(kind, -x);
      EXPECT_TRUE(negative <= 0 && negative >= -std::numeric_limits<TypeParam>::min()) << -x << " gives " << negative;
    }
    EXPECT_EQ(Activate(kind, TypeParam{0}), 0);
    EXPECT_EQ(Activate(kind, TypeParam{-0.0f}), 0);
    EXPECT_TRUE(std::isnan(Activate(kind, std::numeric_limits<TypeParam>::quiet_NaN())));
  }
}

TYPED_TEST(Activation, IsLinearNearZero) {
  for (const ActivationKind kind : {ActivationKind::kGeluErf, ActivationKind::kGeluTanh}) {
    for (const TypeParam x : {TypeParam{1e-30f}, -std::numeric_limits<TypeParam>::min(), TypeParam{-1e-12f}}) {
      const TypeParam value = Activate(kind, x);
      EXPECT_TRUE(std::abs(value - x / 2) <=
                  2 * std::numeric_limits<TypeParam>::epsilon() * std::abs(x) + std::abs(x) * std::abs(x))
          << x << " gives " << value;
    }
  }
}

TYPED_TEST(Activation, WorksInPlaceForEverySize) {
  for (const ActivationKind kind : kKinds) {
    for (const size_t count : OddSizes()) {
      const std::vector<TypeParam> x = As<TypeParam>(Random(count).Floats(count, -4, 4));
      Guarded<TypeParam> in_place(x);
      reference::Activate(kind, in_place.data(), count, in_place.data());
      std::vector<TypeParam> expected;
      for (const TypeParam value : x) expected.push_back(Activate(kind, value));
      EXPECT_TRUE(SameBits(in_place.span(), expected));
      EXPECT_TRUE(in_place.Intact());
    }
  }
  TypeParam untouched = 7;
  reference::Activate<TypeParam>(ActivationKind::kRelu, nullptr, 0, &untouched);
  EXPECT_EQ(untouched, 7);
}

TEST(VectorKernel, AgreesWithTheReferenceOnEveryTarget) { ExpectVectorKernel("activation"); }

}  // namespace
}  // namespace octavo::test
