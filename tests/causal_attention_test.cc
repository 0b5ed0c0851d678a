// Causal and decode attention: the formula in long double, the mask as something never read, and each equal to the other bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/check/case.h"
#include "engine/check/guarded.h"
#include "kernels/causal_attention.h"
#include "kernels/reference/causal_attention.h"
#include "kernels/reference/decode_attention.h"
#include "tests/testing/compare.h"

#include "tests/testing/random.h"
#include "tests/testing/vector_kernel.h"

namespace octavo::test {
namespace {

using check::Guarded;

struct Shape {
  size_t rows, length, heads, head_size;
  size_t width() const { return heads * head_size; }
};

// Lengths and head sizes around the lane counts, and the shapes of the models M8, M64, MODD, one head of 33, heads of 1 and 4; heads and a
// length of models that users bring.
constexpr Shape kShapes[] = {{1, 1, 1, 1},   {2, 2, 3, 1},  {3, 8, 2, 8},   {1, 64, 4, 16}, {2, 33, 3, 12},
                             {1, 17, 1, 33}, {2, 12, 5, 4}, {1, 31, 2, 15}, {1, 15, 1, 9},  {1, 129, 2, 3},
                             {5, 7, 2, 16},  {2, 65, 1, 2}, {1, 20, 2, 64}, {1, 9, 1, 80},  {1, 10, 1, 96},
                             {1, 7, 2, 128}, {1, 300, 1, 2}};

std::string Text(const Shape& shape) {
  return fmt::format("rows {}, length {}, heads {}, head size {}", shape.rows, shape.length, shape.heads,
                     shape.head_size);
}

template <typename Value>
struct Result {
  std::vector<Value> out, weights;
};

template <typename Value>
Result<Value> Causal(const std::vector<Value>& qkv, const Shape& shape) {
  Guarded<Value> out(shape.rows * shape.length * shape.width());
  Guarded<Value> weights(shape.rows * shape.heads * shape.length * shape.length), scratch(shape.length);
  reference::CausalAttention(qkv.data(), shape.rows, shape.length, shape.heads, shape.head_size, out.data(),
                             weights.data(), scratch.data());
  EXPECT_TRUE(out.Intact() && weights.Intact() && scratch.Intact());
  return {{out.span().begin(), out.span().end()}, {weights.span().begin(), weights.span().end()}};
}

template <typename Value>
std::vector<Value> RandomTable(const Shape& shape, uint64_t seed, double size = 2) {
  return As<Value>(Random(seed).Floats(shape.rows * shape.length * 3 * shape.width(), -size, size));
}

struct Expected {
  std::vector<long double> out, weights, out_bound, weight_bound;  // bounds for a unit roundoff of 1
};

// The formula with no largest score subtracted. A score is wrong by δ = (S + 2)·u·Σ|q·k|/√S at most, a weight by twice the largest δ of
// its row and (t + 4)·u relative to itself; the mix adds one rounding a position.
template <typename Value>
Expected Formula(const std::vector<Value>& qkv, const Shape& shape) {
  const size_t length = shape.length, width = shape.width(), size = shape.head_size;
  Expected expected{std::vector<long double>(shape.rows * length * width),
                    std::vector<long double>(shape.rows * shape.heads * length * length),
                    std::vector<long double>(shape.rows * length * width),
                    std::vector<long double>(shape.rows * shape.heads * length * length)};
  const auto at = [&](size_t r, size_t t, size_t part, size_t h, size_t i) {
    return static_cast<long double>(qkv[(r * length + t) * 3 * width + part * width + h * size + i]);
  };
  const auto root = std::sqrt(static_cast<long double>(size));
  for (size_t r = 0; r < shape.rows; ++r) {
    for (size_t h = 0; h < shape.heads; ++h) {
      for (size_t t = 0; t < length; ++t) {
        const size_t row = ((r * shape.heads + h) * length + t) * length;
        long double total = 0, delta = 0;
        for (size_t s = 0; s <= t; ++s) {
          long double dot = 0, magnitude = 0;
          for (size_t i = 0; i < size; ++i) {
            dot += at(r, t, 0, h, i) * at(r, s, 1, h, i);
            magnitude += std::abs(at(r, t, 0, h, i) * at(r, s, 1, h, i));
          }
          expected.weights[row + s] = std::exp(dot / root);
          total += expected.weights[row + s];
          delta = std::max(delta, static_cast<long double>(size + 3) * magnitude / root);
        }
        const long double relative = 2 * delta + static_cast<long double>(t) + 5;
        for (size_t s = 0; s <= t; ++s) {
          expected.weights[row + s] /= total;
          expected.weight_bound[row + s] = relative * expected.weights[row + s];
          for (size_t i = 0; i < size; ++i) {
            const long double term = expected.weights[row + s] * at(r, s, 2, h, i);
            const size_t place = (r * length + t) * width + h * size + i;
            expected.out[place] += term;
            expected.out_bound[place] += (relative + static_cast<long double>(t) + 2) * std::abs(term);
          }
        }
      }
    }
  }
  return expected;
}

template <typename Value>
class Attention : public ::testing::Test {};
using Values = ::testing::Types<double, float>;
TYPED_TEST_SUITE(Attention, Values);

TYPED_TEST(Attention, AgreesWithTheFormula) {
  for (const Shape& shape : kShapes) {
    const std::vector<TypeParam> qkv = RandomTable<TypeParam>(shape, shape.length);
    const Result<TypeParam> result = Causal(qkv, shape);
    const Expected expected = Formula(qkv, shape);
    const long double roundoff = std::numeric_limits<TypeParam>::epsilon() / 2;
    EXPECT_TRUE(WithinEach(result.out, expected.out, [&](size_t i) { return roundoff * expected.out_bound[i]; }))
        << Text(shape);
    EXPECT_TRUE(WithinEach(result.weights, expected.weights, [&](size_t i) {
      return roundoff * expected.weight_bound[i];
    })) << Text(shape);
    EXPECT_TRUE(RowsSumToOne(result.weights, shape.length)) << Text(shape);
  }
}

// q·k = 2 ln 3 over a head of 4: the score is ln 3, the weights 1/4 and 3/4.
TYPED_TEST(Attention, DividesByTheRootOfTheHeadSize) {
  const auto log9 = static_cast<TypeParam>(2 * std::log(3.0L));
  std::vector<TypeParam> qkv(2 * 12, 0);
  qkv[12] = 1;                  // q of position 1
  qkv[12 + 4] = log9;           // its key; the key of position 0 is zero
  qkv[8] = 1, qkv[12 + 8] = 5;  // values
  const Result<TypeParam> result = Causal(qkv, {1, 2, 1, 4});
  constexpr double kBound = 8 * std::numeric_limits<TypeParam>::epsilon();
  EXPECT_TRUE(Within(result.weights, std::vector{1.0, 0.0, 0.25, 0.75}, kBound));
  EXPECT_TRUE(Within(result.out, std::vector<double>{1, 0, 0, 0, 4, 0, 0, 0}, kBound));
}

// The same for every size that a head may have.
TYPED_TEST(Attention, DividesByTheRootOfAnyHeadSize) {
  for (const size_t size : {1, 2, 9, 16, 48, 49, 64, 80, 96, 128, 256}) {
    SCOPED_TRACE(size);
    std::vector<TypeParam> qkv(2 * 3 * size, 0);
    qkv[3 * size] = 1;  // q of position 1
    qkv[4 * size] = static_cast<TypeParam>(std::sqrt(static_cast<long double>(size)) * std::log(3.0L));  // its key
    const Result<TypeParam> result = Causal(qkv, {1, 2, 1, size});
    EXPECT_TRUE(
        Within(result.weights, std::vector{1.0, 0.0, 0.25, 0.75}, 8 * std::numeric_limits<TypeParam>::epsilon()));
  }
}

TYPED_TEST(Attention, EqualScoresAverage) {
  const Shape shape = {1, 16, 2, 4};
  std::vector<TypeParam> qkv = RandomTable<TypeParam>(shape, 1);
  for (size_t t = 0; t < shape.length; ++t) {
    for (size_t f = 0; f < shape.width(); ++f) qkv[t * 24 + f] = 0;  // queries
  }
  const Result<TypeParam> result = Causal(qkv, shape);
  for (size_t h = 0; h < 2; ++h) {
    for (size_t t = 0; t < 16; ++t) {
      for (size_t s = 0; s < 16; ++s) {
        const TypeParam expected = s <= t ? 1 / static_cast<TypeParam>(t + 1) : 0;
        EXPECT_EQ(result.weights[(h * 16 + t) * 16 + s], expected);
      }
    }
  }
}

// Scores of ±10^5 overflow any exponential that has no largest score subtracted; one position takes all.
TYPED_TEST(Attention, HugeScoresPickOnePosition) {
  const Shape shape = {1, 9, 1, 8};
  std::vector<TypeParam> qkv = RandomTable<TypeParam>(shape, 2);
  for (size_t t = 0; t < 9; ++t) {
    for (size_t i = 0; i < 8; ++i) qkv[t * 24 + i] = 1000, qkv[t * 24 + 8 + i] = t == 4 ? 100 : -100;
  }
  const Result<TypeParam> result = Causal(qkv, shape);
  for (size_t t = 4; t < 9; ++t) {
    for (size_t s = 0; s < 9; ++s) EXPECT_EQ(result.weights[t * 9 + s], s == 4 ? 1 : 0);
    EXPECT_TRUE(SameBits(std::span(result.out).subspan(t * 8, 8), std::span(qkv).subspan(4 * 24 + 16, 8)));
  }
  EXPECT_TRUE(RowsSumToOne(result.weights, 9));
}

// The mask is the loop bound: what lies behind position t is not multiplied by zero, it is not read.
TYPED_TEST(Attention, NothingBehindAPositionIsRead) {
  const Shape shape = {1, 17, 3, 4};
  const std::vector<TypeParam> qkv = RandomTable<TypeParam>(shape, 3);
  const Result<TypeParam> clean = Causal(qkv, shape);
  for (size_t t = 0; t + 1 < shape.length; ++t) {
    std::vector<TypeParam> spoilt = qkv;
    std::fill(spoilt.begin() + static_cast<std::ptrdiff_t>((t + 1) * 3 * shape.width()), spoilt.end(),
              std::numeric_limits<TypeParam>::quiet_NaN());
    const Result<TypeParam> result = Causal(spoilt, shape);
    EXPECT_TRUE(SameBits(std::span(result.out).first((t + 1) * shape.width()),
                         std::span(clean.out).first((t + 1) * shape.width())));
    for (size_t h = 0; h < shape.heads; ++h) {
      const size_t begin = h * 17 * 17, count = (t + 1) * 17;
      EXPECT_TRUE(
          SameBits(std::span(result.weights).subspan(begin, count), std::span(clean.weights).subspan(begin, count)));
    }
  }
}

TYPED_TEST(Attention, WeightsAreOptional) {
  const Shape shape = {2, 9, 2, 5};
  const std::vector<TypeParam> qkv = RandomTable<TypeParam>(shape, 4);
  std::vector<TypeParam> out(2 * 9 * 10), scratch(9);
  reference::CausalAttention<TypeParam>(qkv.data(), 2, 9, 2, 5, out.data(), nullptr, scratch.data());
  EXPECT_TRUE(SameBits(out, Causal(qkv, shape).out));
}

TYPED_TEST(Attention, RowsAreIndependent) {
  const Shape shape = {3, 9, 2, 5}, single = {1, 9, 2, 5};
  const std::vector<TypeParam> qkv = RandomTable<TypeParam>(shape, 5);
  const Result<TypeParam> together = Causal(qkv, shape);
  const size_t table = qkv.size() / 3, out = together.out.size() / 3, weights = together.weights.size() / 3;
  for (size_t r = 0; r < 3; ++r) {
    const auto begin = qkv.begin() + static_cast<std::ptrdiff_t>(r * table);
    const Result<TypeParam> alone =
        Causal(std::vector<TypeParam>(begin, begin + static_cast<std::ptrdiff_t>(table)), single);
    EXPECT_TRUE(SameBits(std::span(together.out).subspan(r * out, out), alone.out));
    EXPECT_TRUE(SameBits(std::span(together.weights).subspan(r * weights, weights), alone.weights));
  }
}

TYPED_TEST(Attention, HeadsAreIndependent) {
  const Shape shape = {1, 9, 3, 4};
  std::vector<TypeParam> qkv = RandomTable<TypeParam>(shape, 6);
  const Result<TypeParam> clean = Causal(qkv, shape);
  for (size_t t = 0; t < 9; ++t) qkv[t * 36 + 4] = std::numeric_limits<TypeParam>::quiet_NaN();  // q of head 1
  const Result<TypeParam> spoilt = Causal(qkv, shape);
  for (size_t i = 0; i < clean.out.size(); ++i) {
    const bool head1 = i % 12 / 4 == 1;
    EXPECT_EQ(std::isnan(spoilt.out[i]), head1);
    EXPECT_TRUE(head1 || spoilt.out[i] == clean.out[i]);
  }
}

// One new position over a cache gives the bits of the whole text, whatever the stride and whatever an earlier text left behind it.
TYPED_TEST(Attention, DecodeEqualsCausal) {
  for (const Shape& shape : kShapes) {
    const size_t length = shape.length, width = shape.width(), stride = width + 3, room = length + 2;
    const std::vector<TypeParam> qkv = RandomTable<TypeParam>({1, length, shape.heads, shape.head_size}, length);
    const Result<TypeParam> causal = Causal(qkv, {1, length, shape.heads, shape.head_size});
    std::vector<TypeParam> keys(room * stride, std::numeric_limits<TypeParam>::quiet_NaN()), values = keys;
    for (size_t t = 0; t < length; ++t) {
      const auto row = qkv.begin() + static_cast<std::ptrdiff_t>(t * 3 * width);
      const auto part = static_cast<std::ptrdiff_t>(width);
      std::copy(row + part, row + 2 * part, keys.begin() + static_cast<std::ptrdiff_t>(t * stride));
      std::copy(row + 2 * part, row + 3 * part, values.begin() + static_cast<std::ptrdiff_t>(t * stride));
      Guarded<TypeParam> out(width), weights(shape.heads * (t + 3)), scratch(t + 1);
      reference::DecodeAttention(&*row, keys.data(), values.data(), stride, t + 1, shape.heads, shape.head_size,
                                 out.data(), weights.data(), t + 3, scratch.data());
      EXPECT_TRUE(SameBits(out.span(), std::span(causal.out).subspan(t * width, width))) << Text(shape) << ", t " << t;
      for (size_t h = 0; h < shape.heads; ++h) {
        const size_t begin = (h * length + t) * length;
        EXPECT_TRUE(
            SameBits(weights.span().subspan(h * (t + 3), t + 1), std::span(causal.weights).subspan(begin, t + 1)));
        EXPECT_TRUE(std::isnan(weights.span()[h * (t + 3) + t + 1])) << "wrote behind the row";
      }
      EXPECT_TRUE(out.Intact() && weights.Intact() && scratch.Intact());
    }
  }
}

TEST(VectorKernel, AgreesWithTheReferenceOnEveryTarget) { ExpectVectorKernel("causal_attention"); }

TEST(VectorKernel, HasLargeHeadsAndLongTexts) { ExpectLargeAttention(check::CheckCausalAttention); }

// A product that underflows leaves a sum of -0, with fused multiply-add, and what the mask keeps from a row must leave even that as it is: so
// does decoding, which has no mask. Row 1 reads keys 0 and 1, of which the first weighs most; what stands behind does not count.
TEST(VectorKernel, TheMaskKeepsMinusZero) {
  constexpr size_t kLength = 16;
  for (const std::string& target : RunnableTargets()) {
    SCOPED_TRACE(target);
    UseTarget(target);
    check::Panels qkv(kLength, 3), out(kLength, 1);
    for (size_t t = 0; t < kLength; ++t) {
      qkv.at(t, 0) = 1;
      qkv.at(t, 1) = t == 0 ? 3.0f : 0.0f;
      qkv.at(t, 2) = t == 0 ? 0.0f : -0x1p-149f;
    }
    Guarded<float> scratch(PanelFloats(kLength, kPanelRows), kPanelAlignment);
    CausalAttention(qkv.data(), kLength, 0, 1, 1, out.data(), nullptr, scratch.data());
    EXPECT_EQ(out.at(0, 0), 0);
    EXPECT_FALSE(std::signbit(out.at(0, 0)));
    for (size_t t = 1; t < kLength; ++t) {
      EXPECT_EQ(out.at(t, 0), 0);
      EXPECT_EQ(std::signbit(out.at(t, 0)), HasFusedMultiplyAdd(target)) << "row " << t;
    }
  }
  UseBestTarget();
}

}  // namespace
}  // namespace octavo::test
