// What heads read: the statistics on triangles made by hand and on PyTorch's attention weights, and the properties that the mask and the
// position embeddings rest on.
#include "engine/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/aligned.h"
#include "kernels/causal_attention.h"
#include "kernels/targets.h"
#include "tests/testing/compare.h"
#include "tests/testing/errors.h"
#include "tests/testing/golden.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

constexpr std::u32string_view kBag = U"The bag didn't fit in the car because it was too small";

// A triangle where row t gives all weight to column `read[t]`.
std::vector<float> Reading(const std::vector<size_t>& read) {
  std::vector<float> weights(read.size() * read.size());
  for (size_t t = 0; t < read.size(); ++t) weights[t * read.size() + read[t]] = 1;
  return weights;
}

// The same with the column that `where` gives for each row.
template <typename Where>
std::vector<float> ReadingWhere(size_t length, const Where& where) {
  std::vector<size_t> read(length);
  for (size_t t = 0; t < length; ++t) read[t] = where(t);
  return Reading(read);
}

TEST(Statistics, OfAHeadThatReadsThePreviousCharacter) {
  const auto previous = [](size_t t) { return t - (t > 0); };
  const HeadStatistics found = DescribeHead(ReadingWhere(kBag.size(), previous), kBag);
  EXPECT_EQ(found.num_previous, 53u);
  EXPECT_EQ(found.previous_largest, 53u);
  EXPECT_EQ(found.num_inside, 29u);
  EXPECT_EQ(found.space_largest, 0u)
      << "a first letter's previous character is the space, but it is not inside its word";
  EXPECT_EQ(found.recent_share, 1);
  EXPECT_EQ(found.mean_distance, 1);
}

TEST(Statistics, OfAHeadThatReadsTheSpaceBeforeTheWord) {
  const auto space = [](size_t t) {
    const size_t found = kBag.rfind(U' ', t);
    return found == kBag.npos ? 0 : found;
  };
  const HeadStatistics found = DescribeHead(ReadingWhere(kBag.size(), space), kBag);
  EXPECT_EQ(found.num_inside, 29u);
  EXPECT_EQ(found.space_largest, 29u);
  EXPECT_EQ(found.num_previous, 53u);
  EXPECT_EQ(found.previous_largest, 12u) << "first letters, 11 of them behind a space, and the text's second";
}

TEST(Statistics, OfAHeadThatReadsItself) {
  const HeadStatistics found = DescribeHead(ReadingWhere(kBag.size(), [](size_t t) { return t; }), kBag);
  EXPECT_EQ(found.previous_largest, 0u);
  EXPECT_EQ(found.space_largest, 0u);
  EXPECT_EQ(found.recent_share, 1);
  EXPECT_EQ(found.mean_distance, 0);
}

// Rows by hand: a tie goes to the nearest position, shares and distances are means over rows 1 to 3.
TEST(Statistics, TiesGoToTheNearestPosition) {
  const float nan = std::numeric_limits<float>::quiet_NaN();  // above the diagonal nothing is read
  const std::vector<float> weights = {
      1,     nan,  nan,   nan,   // ' '
      0.5f,  0.5f, nan,   nan,   // 'a': itself
      0.25f, 0.5f, 0.25f, nan,   // 'b': the previous one; the space does not
      0.5f,  0.0f, 0.5f,  0.0f,  // 'c': the previous one, nearer than the space
  };
  const HeadStatistics found = DescribeHead(weights, U" abc");
  EXPECT_EQ(found.num_previous, 3u);
  EXPECT_EQ(found.previous_largest, 2u);
  EXPECT_EQ(found.num_inside, 2u);
  EXPECT_EQ(found.space_largest, 0u);
  EXPECT_DOUBLE_EQ(found.recent_share, (1 + 1 + 0.5) / 3);
  EXPECT_DOUBLE_EQ(found.mean_distance, (0.5 + (0.5 + 0.5) + (1.5 + 0.5)) / 3);
}

TEST(Statistics, WordsAreWhatWhiteSpaceDivides) {
  const auto inside = [](std::u32string_view text) {
    return DescribeHead(std::vector<float>(text.size() * text.size(), 1.0f), text).num_inside;
  };
  EXPECT_EQ(inside(U"word"), 0u) << "no space before it";
  EXPECT_EQ(inside(U" word"), 3u);
  EXPECT_EQ(inside(U"  word"), 3u);
  EXPECT_EQ(inside(U"a\nword"), 0u) << "a line end is no space";
  EXPECT_EQ(inside(U" \nword"), 0u);
  EXPECT_EQ(inside(U"\n word, it's"), 4u + 3u);
  EXPECT_EQ(inside(U" ab\u2028cd\u3000ef gh"), 1u + 1u);
  EXPECT_EQ(inside(U" a b c "), 0u);
}

TEST(Statistics, OfOneCharacterAreEmpty) {
  const HeadStatistics found = DescribeHead(std::vector<float>{1}, U"a");
  EXPECT_EQ(found.num_previous, 0u);
  EXPECT_EQ(found.recent_share, 0);
  EXPECT_EQ(found.mean_distance, 0);
}

// The definitions once more, in loops over PyTorch's weights.
HeadStatistics FromGolden(const double* weights, const std::vector<std::string>& characters) {
  const size_t length = characters.size();
  const auto is_space = [&](size_t t) { return characters[t] == " "; };
  const auto is_white = [&](size_t t) {
    return is_space(t) || std::string("\n\t\u2028").find(characters[t]) != std::string::npos;
  };
  HeadStatistics expected;
  for (size_t t = 1; t < length; ++t) {
    size_t largest = 0;
    double recent = 0, distance = 0;
    for (size_t s = 0; s <= t; ++s) {
      const double weight = weights[t * length + s];
      if (weight >= weights[t * length + largest]) largest = s;
      if (s + 2 >= t) recent += weight;
      distance += weight * static_cast<double>(t - s);
    }
    size_t first = t;  // of the word that t is in
    while (first > 0 && !is_white(t) && !is_white(first - 1)) --first;
    const bool inside = first < t && first > 0 && is_space(first - 1);
    ++expected.num_previous;
    expected.previous_largest += largest + 1 == t;
    expected.num_inside += inside;
    expected.space_largest += inside && largest + 1 == first;
    expected.recent_share += recent / static_cast<double>(length - 1);
    expected.mean_distance += distance / static_cast<double>(length - 1);
  }
  return expected;
}

class GoldenAttentionTest : public ::testing::TestWithParam<nlohmann::json> {};

TEST_P(GoldenAttentionTest, StatisticsAreThoseOfPyTorchsWeights) {
  const Model model = OpenGolden(GetParam());
  const GoldenValues golden = ReadGolden(GetParam());
  const size_t length = golden.tokens.size();
  std::vector<std::string> characters;
  for (const TokenId id : golden.tokens) characters.emplace_back(model.vocabulary().text(id));
  // A weight is off by 1e-5 at most (golden_test.cc), a sum of three by three times that, a distance by Σ (t - s) times it.
  constexpr double kBound = 1e-5;
  for (const std::string& target : RunnableTargets()) {
    SCOPED_TRACE(target);
    UseTarget(target);
    const Attention attention = Attend(model, golden.tokens, {.num_threads = 2});
    ASSERT_EQ(attention.length, length);
    EXPECT_TRUE(Within(golden.RowsOf(attention.weights), golden.attention, kBound));
    ASSERT_EQ(attention.statistics.size(), model.config().num_layers * model.config().num_heads);
    if (golden.positions.size() < length) continue;  // statistics are about all positions
    for (size_t i = 0; i < attention.statistics.size(); ++i) {
      SCOPED_TRACE(i);
      const HeadStatistics expected = FromGolden(golden.attention.data() + i * length * length, characters);
      const HeadStatistics& found = attention.statistics[i];
      EXPECT_EQ(found.num_previous, expected.num_previous);
      EXPECT_EQ(found.previous_largest, expected.previous_largest);
      EXPECT_EQ(found.num_inside, expected.num_inside);
      EXPECT_EQ(found.space_largest, expected.space_largest);
      EXPECT_TRUE(std::abs(found.recent_share - expected.recent_share) <= 3 * kBound);
      EXPECT_TRUE(std::abs(found.mean_distance - expected.mean_distance) <=
                  kBound * static_cast<double>(length * length) / 2);
    }
  }
  UseBestTarget();
}

INSTANTIATE_TEST_SUITE_P(, GoldenAttentionTest, ::testing::ValuesIn(ReadGoldenManifest()),
                         [](const auto& test) { return test.param["name"].template get<std::string>(); });

TEST(GoldenAttention, HoldsTheSentenceOfTheIssue) {
  const std::vector<nlohmann::json> manifest = ReadGoldenManifest();
  const auto bag =
      std::find_if(manifest.begin(), manifest.end(), [](const auto& e) { return e["name"] == "tiny_bag"; });
  ASSERT_NE(bag, manifest.end());
  const Attention attention = Attend(OpenGolden(*bag), ReadGolden(*bag).tokens);
  ASSERT_EQ(attention.statistics.size(), 8u);
  for (const HeadStatistics& head : attention.statistics) {
    EXPECT_EQ(head.num_previous, 53u);
    EXPECT_EQ(head.num_inside, 29u);
  }
}

TEST(Attend, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Model model = RandomModel(M64Shape());
  const std::vector<TokenId> text = Random(3).Tokens(64, 65);
  const Attention one = Attend(model, text), many = Attend(model, text, {.num_threads = 5});
  EXPECT_TRUE(SameBits(many.weights, one.weights));
  EXPECT_EQ(one.weights.size(), 4u * 4 * 64 * 64);
  EXPECT_TRUE(
      SameBits(one.WeightsOf(1, 2), std::vector(one.weights.begin() + 6 * 4096, one.weights.begin() + 7 * 4096)));
}

TEST(Attend, RefusesWhatItCannotRead) {
  const Model model = RandomModel(M8Shape());
  EXPECT_TRUE(Fails([&] { Attend(model, {}); }, {"0 characters", "1 to 8"}));
  EXPECT_TRUE(Fails([&] { Attend(model, std::vector<TokenId>(9)); }, {"9 characters", "1 to 8"}));
  EXPECT_TRUE(Fails([&] { Attend(model, std::vector<TokenId>{0, 5}); }, {"token 2 is 5", "0 to 4"}));
  Weights huge = RandomWeights(ConfigOf(M8Shape()), 1);
  for (float& x : huge.layers[1].c_attn.weight) x *= 1e38f;
  const Model overflowing = BuildModel(ConfigOf(M8Shape()), M8Shape().vocabulary, std::move(huge));
  EXPECT_TRUE(Fails([&] { Attend(overflowing, std::vector<TokenId>{0, 1, 2}); }, {"layer 2, head 1", "not finite"}));
#ifndef OCTAVO_TEST_SANITIZED  // sanitizers end the program when so much is asked for
  const Model long_one = RandomModel({Characters("ab"), 1 << 20, 64, 1, 1});
  EXPECT_TRUE(Fails([&] { Attend(long_one, std::vector<TokenId>(1 << 20)); }, {"281474976710656 bytes"}));
#endif
}

// ---- what the mask and the position embeddings do ----

class MaskAndPositionsTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(UseTarget(GetParam())); }
  void TearDown() override { UseBestTarget(); }

  static constexpr size_t kLength = 40, kHeads = 4;
  const std::vector<TokenId> text_ = Random(3).Tokens(kLength, 65);
  // A new order of all positions but the last.
  const std::vector<size_t> order_ = [] {
    std::vector<size_t> order(kLength);
    std::iota(order.begin(), order.end(), size_t{0});
    Random random(7);
    for (size_t i = kLength - 2; i > 0; --i) std::swap(order[i], order[random.Below(i + 1)]);
    return order;
  }();
  // exp of the same scores, summed in another order and divided by the sum: so many roundings, twice.
  const double bound_ = 2 * (kLength + 1) * 0x1p-24;

  static Model Build(bool positions) {
    Weights weights = RandomWeights(ConfigOf(M64Shape()), 1);
    if (!positions) weights.wpe.assign(weights.wpe.size(), 0.0f);
    return BuildModel(ConfigOf(M64Shape()), M64Shape().vocabulary, std::move(weights));
  }

  // Row kLength - 1 of head `head` in the first layer.
  static std::vector<float> LastRow(const Attention& attention, size_t head) {
    const auto row = attention.WeightsOf(0, head).last(kLength);
    return {row.begin(), row.end()};
  }

  // Whether the last character reads each earlier one alike, wherever it stands, in all heads of the first layer.
  bool OrderDoesNotMatter(const Model& model) const {
    std::vector<TokenId> shuffled(kLength);
    for (size_t i = 0; i < kLength; ++i) shuffled[i] = text_[order_[i]];
    const Attention before = Attend(model, text_), after = Attend(model, shuffled);
    size_t same = 0;
    for (size_t head = 0; head < kHeads; ++head) {
      const std::vector<float> row = LastRow(before, head);
      std::vector<float> expected(kLength);
      for (size_t i = 0; i < kLength; ++i) expected[i] = row[order_[i]];
      same += static_cast<bool>(Within(LastRow(after, head), expected, bound_));
    }
    EXPECT_TRUE(same == 0 || same == kHeads) << same;
    return same == kHeads;
  }
};

TEST_P(MaskAndPositionsTest, WithoutPositionEmbeddingsTheOrderOfEarlierCharactersDoesNotMatter) {
  EXPECT_TRUE(OrderDoesNotMatter(Build(false)));
}

TEST_P(MaskAndPositionsTest, WithPositionEmbeddingsItDoes) { EXPECT_FALSE(OrderDoesNotMatter(Build(true))); }

// The kernel alone, for any keys: whoever they come from, a key gets the weight that its score earns.
TEST_P(MaskAndPositionsTest, TheKernelAloneIsBlindToTheOrderOfKeys) {
  constexpr size_t kSize = 8, kFeatures = 3 * kHeads * kSize;
  const std::vector<float> table = Random(9).Floats(kLength * kFeatures, -2, 2);
  std::vector<float> shuffled;
  for (const size_t from : order_) {
    const auto row = std::span(table).subspan(from * kFeatures, kFeatures);
    shuffled.insert(shuffled.end(), row.begin(), row.end());
  }
  const auto weights_of = [&](const std::vector<float>& qkv) {
    std::vector<float> out(kLength * kFeatures / 3), weights(kHeads * kLength * kLength);
    AlignedFloats scratch(CausalAttentionTableScratch(kLength, kHeads, kSize));
    CausalAttentionTable(qkv.data(), 1, kLength, kHeads, kSize, out.data(), weights.data(), scratch.data());
    return weights;
  };
  const std::vector<float> before = weights_of(table), after = weights_of(shuffled);
  for (size_t head = 0; head < kHeads; ++head) {
    const size_t last_row = (head * kLength + kLength - 1) * kLength;
    std::vector<float> expected(kLength);
    for (size_t i = 0; i < kLength; ++i) expected[i] = before[last_row + order_[i]];
    EXPECT_TRUE(Within(std::span(after).subspan(last_row, kLength), expected, bound_)) << "head " << head;
  }
}

TEST_P(MaskAndPositionsTest, ALaterCharacterNeverChangesAnEarlierRow) {
  const Model model = Build(true);
  const Attention before = Attend(model, text_);
  for (const size_t changed : {39, 20, 1}) {
    std::vector<TokenId> other = text_;
    other[changed] = (other[changed] + 1) % 65;
    const Attention after = Attend(model, other);
    for (size_t row = 0; row < before.weights.size() / kLength; ++row) {
      const auto of = [&](const Attention& attention) {
        return std::span(attention.weights).subspan(row * kLength, kLength);
      };
      if (row % kLength < changed) {
        EXPECT_TRUE(SameBits(of(after), of(before))) << "row " << row << ", changed " << changed;
      } else {
        EXPECT_FALSE(SameBits(of(after), of(before))) << "row " << row << ", changed " << changed;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, MaskAndPositionsTest, ::testing::ValuesIn(RunnableTargets()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace octavo::test
