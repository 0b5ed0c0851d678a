// The forward pass in the vector kernels: a text in one piece, cut anywhere and step by step gives the same bits, and nothing looks ahead.
#include "engine/forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "engine/kv_cache.h"
#include "kernels/targets.h"
#include "tests/testing/compare.h"
#include "tests/testing/errors.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

using Tokens = std::span<const TokenId>;

// Row r of panels of `num_features`, appended to `rows`.
void AppendRow(const float* panels, size_t r, size_t num_features, std::vector<float>& rows) {
  const float* from = panels + r / kPanelRows * kPanelRows * num_features + r % kPanelRows;
  for (size_t f = 0; f < num_features; ++f) rows.push_back(from[f * kPanelRows]);
}

// Logits of positions `first_needed` …, row-major, from one reading of the text.
std::vector<float> ReadWhole(const Model& model, Tokens text, size_t first_needed = 0) {
  const size_t vocabulary = model.config().vocabulary_size;
  TextPass pass(model);
  pass.Read(text, first_needed);
  std::vector<float> rows;
  for (size_t t = first_needed; t < text.size(); ++t) {
    AppendRow(pass.Logits(t / kPanelRows), t % kPanelRows, vocabulary, rows);
  }
  return rows;
}

// Logits of all positions: the text is read again for each piece, which asks for the logits of the piece alone.
std::vector<float> ReadInPieces(const Model& model, Tokens text, size_t piece) {
  std::vector<float> rows;
  for (size_t begin = 0; begin < text.size(); begin += piece) {
    const std::vector<float> more = ReadWhole(model, text.first(std::min(begin + piece, text.size())), begin);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

// Logits of positions `prefilled` …, a character a step behind a prefill, in one lane of two panels; the other lanes read other texts.
std::vector<float> ReadBySteps(const Model& model, Tokens text, size_t prefilled, size_t lane) {
  const size_t vocabulary = model.config().vocabulary_size;
  StepPass steps(model, 2);
  Random random(lane);
  if (prefilled > 0) {
    TextPass pass(model);
    pass.Read(text.first(prefilled), prefilled - 1);
    steps.Load(lane, pass, prefilled);
  }
  std::vector<float> rows;
  for (size_t t = prefilled; t < text.size(); ++t) {
    std::vector<int32_t> tokens = random.Tokens(steps.num_lanes(), vocabulary);
    std::vector<int32_t> positions(steps.num_lanes(), static_cast<int32_t>(t - prefilled));
    tokens[lane] = text[t];
    positions[lane] = static_cast<int32_t>(t);
    AppendRow(steps.Step(tokens.data(), positions.data(), steps.num_lanes()), lane, vocabulary, rows);
  }
  return rows;
}

class ForwardTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(UseTarget(GetParam())); }
  void TearDown() override { UseBestTarget(); }

  static constexpr size_t kLength = 40, kVocabulary = 65;
  const Model m64_ = RandomModel(M64Shape());
  const std::vector<TokenId> tokens_ = Random(3).Tokens(kLength, kVocabulary);
};

TEST_P(ForwardTest, PiecesEqualTheWhole) {
  const std::vector<float> whole = ReadWhole(m64_, tokens_);
  for (const size_t piece : {1, 7, 16, 39}) {
    EXPECT_TRUE(SameBits(ReadInPieces(m64_, tokens_, piece), whole)) << "pieces of " << piece;
  }
}

TEST_P(ForwardTest, StepsBehindAnyPrefillEqualTheWhole) {
  const std::vector<float> whole = ReadWhole(m64_, tokens_);
  std::vector<size_t> cuts = {0, 1, 7, 16, 17, 39};
  Random random(5);
  for (int i = 0; i < 4; ++i) cuts.push_back(random.Below(kLength));
  for (const size_t cut : cuts) {
    const std::vector<float> steps = ReadBySteps(m64_, tokens_, cut, random.Below(32));
    EXPECT_TRUE(SameBits(steps, std::span(whole).subspan(cut * kVocabulary))) << "cut at " << cut;
  }
}

TEST_P(ForwardTest, ALaterCharacterMovesNoEarlierRow) {
  // The text in one piece, in pieces, step by step, and cut at random.
  const auto read_all_ways = [&](Tokens text) {
    std::vector<std::vector<float>> ways = {ReadWhole(m64_, text), ReadBySteps(m64_, text, 0, 3)};
    for (const size_t piece : {1, 7, 16}) ways.push_back(ReadInPieces(m64_, text, piece));
    const size_t cut = 1 + Random(6).Below(kLength - 1);
    std::vector<float>& behind_prefill = ways.emplace_back(ReadWhole(m64_, text.first(cut)));
    const std::vector<float> rest = ReadBySteps(m64_, text, cut, 20);
    behind_prefill.insert(behind_prefill.end(), rest.begin(), rest.end());
    return ways;
  };
  const std::vector<std::vector<float>> before = read_all_ways(tokens_);
  for (const size_t changed : {39, 20, 1}) {
    std::vector<TokenId> other = tokens_;
    other[changed] = (other[changed] + 1) % static_cast<TokenId>(kVocabulary);
    const std::vector<std::vector<float>> after = read_all_ways(other);
    for (size_t way = 0; way < before.size(); ++way) {
      for (size_t t = 0; t < kLength; ++t) {
        const bool same = static_cast<bool>(SameBits(std::span(after[way]).subspan(t * kVocabulary, kVocabulary),
                                                     std::span(before[way]).subspan(t * kVocabulary, kVocabulary)));
        EXPECT_EQ(same, t < changed) << "way " << way << ", position " << t << ", changed " << changed;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, ForwardTest, ::testing::ValuesIn(RunnableTargets()),
                         [](const auto& test) { return test.param; });

// ---- caches that do not fit ----

TEST(Cache, SaysHowManyBytesItWants) {
  ModelConfig config;
  config.num_heads = 1;
  config.width = config.num_layers = config.context_length = 2147483647;
  EXPECT_TRUE(
      Fails([&] { KvCache::Bytes(config, 1, KvPrecision::kF32); }, {"2147483647 layers", "than can be counted"}));
#ifndef OCTAVO_TEST_SANITIZED  // sanitizers end the program when so much is asked for
  config.width = config.num_layers = 1 << 20;
  config.context_length = 1000;
  EXPECT_TRUE(Fails([&] { KvCache(config, 1, KvPrecision::kF32); }, {"1000 characters", "140737488355328000 bytes"}));
#endif
}

}  // namespace
}  // namespace octavo::test
