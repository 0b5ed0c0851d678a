// Token plus position embedding: each row takes its own token's and its own position's row, and nothing else is read or written.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "engine/check/guarded.h"
#include "kernels/reference/embed.h"
#include "tests/testing/compare.h"

#include "tests/testing/random.h"
#include "tests/testing/vector_kernel.h"

namespace octavo::test {
namespace {

using check::Guarded;

template <typename Value>
class Embed : public ::testing::Test {};
using Values = ::testing::Types<double, float>;
TYPED_TEST_SUITE(Embed, Values);

TYPED_TEST(Embed, AddsTheTwoRows) {
  const std::vector<float> tokens = {1, 2, 10, 20, 100, 200}, positions = {0.5f, 0.25f, -1, -2};
  const std::vector<int32_t> token = {2, 0, 2}, position = {1, 1, 0};
  std::vector<TypeParam> out(6);
  reference::Embed(token.data(), position.data(), 3, tokens.data(), positions.data(), 2, out.data());
  EXPECT_TRUE(SameBits(out, std::vector<TypeParam>{99, 198, 0, 0, 100.5, 200.25}));
}

TYPED_TEST(Embed, IsTheRoundedSumAtEveryWidth) {
  constexpr size_t kVocabulary = 11, kContext = 7, kRows = 19;
  for (const size_t width : OddSizes()) {
    Random random(width);
    const std::vector<float> tokens = random.Magnitudes(kVocabulary * width, -30, 30);
    const std::vector<float> positions = random.Magnitudes(kContext * width, -30, 30);
    const std::vector<int32_t> token = random.Tokens(kRows, kVocabulary), position = random.Tokens(kRows, kContext);
    Guarded<TypeParam> out(kRows * width);
    reference::Embed(token.data(), position.data(), kRows, tokens.data(), positions.data(), width, out.data());
    std::vector<TypeParam> expected;
    for (size_t i = 0; i < kRows * width; ++i) {
      const size_t r = i / width, f = i % width;
      const long double sum = static_cast<long double>(tokens[static_cast<size_t>(token[r]) * width + f]) +
                              positions[static_cast<size_t>(position[r]) * width + f];
      expected.push_back(static_cast<TypeParam>(sum));
    }
    EXPECT_TRUE(SameBits(out.span(), expected)) << "width " << width;
    EXPECT_TRUE(out.Intact());
  }
}

TYPED_TEST(Embed, ReadsOnlyTheRowsItNeeds) {
  constexpr size_t kWidth = 17;
  std::vector<float> tokens(5 * kWidth, std::numeric_limits<float>::quiet_NaN()), positions = tokens;
  for (size_t f = 0; f < kWidth; ++f) tokens[4 * kWidth + f] = positions[f] = 1;
  const std::vector<int32_t> token = {4, 4}, position = {0, 0};
  std::vector<TypeParam> out(2 * kWidth);
  reference::Embed(token.data(), position.data(), 2, tokens.data(), positions.data(), kWidth, out.data());
  EXPECT_TRUE(SameBits(out, std::vector<TypeParam>(2 * kWidth, 2)));
}

TYPED_TEST(Embed, WritesNothingForNoRows) {
  const std::vector<float> table = {1};
  TypeParam out = 7;
  reference::Embed(nullptr, nullptr, 0, table.data(), table.data(), 1, &out);
  EXPECT_EQ(out, 7);
}

TEST(VectorKernel, AgreesWithTheReferenceOnEveryTarget) { ExpectVectorKernel("embed"); }

}  // namespace
}  // namespace octavo::test
