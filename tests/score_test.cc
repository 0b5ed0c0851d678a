// Scores against their definition: each character from the first window that predicts it, by a fresh pass.
#include "engine/score.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/softmax.h"
#include "tests/testing/compare.h"
#include "tests/testing/errors.h"
#include "tests/testing/models.h"
#include "tests/testing/naive_text.h"

namespace octavo::test {
namespace {

// Window i reads [i·stride, i·stride + T) and predicts each one's successor; the first window that does counts.
std::vector<double> Naive(const Model& model, const std::vector<TokenId>& text, size_t stride) {
  const size_t context = model.config().context_length;
  if (stride == 0) stride = context;
  std::vector<double> expected;
  for (size_t target = 1; target < text.size(); ++target) {
    size_t begin = 0;
    while (begin + context < target) begin += stride;
    const std::vector<double> logits = NaiveLogits(model, std::span(text).subspan(begin, target - begin));
    expected.push_back(NaiveLogProbability(logits, text[target]));
  }
  return expected;
}

ScoreRequest Request(std::vector<TokenId> text, size_t stride = 0) {
  ScoreRequest request;
  request.text = std::move(text);
  request.stride = stride;
  return request;
}

void Check(const Model& model, const std::vector<TokenId>& text, size_t stride) {
  const Score score = ScoreText(model, Request(text, stride));
  const std::vector<double> expected = Naive(model, text, stride);
  EXPECT_EQ(score.error, "");
  EXPECT_TRUE(Within(score.log_probabilities, expected, kLogProbabilityBound))
      << "text of " << text.size() << ", stride " << stride;
  double nats = 0;
  for (const double x : expected) nats -= x;
  EXPECT_TRUE(
      Within(std::vector{score.nats}, std::vector{nats}, kLogProbabilityBound * static_cast<double>(expected.size())));
  // The sum itself is one of doubles.
  double sum = 0;
  for (const double x : score.log_probabilities) sum -= x;
  EXPECT_EQ(score.nats, sum);
}

TEST(Score, EveryLengthAndStride) {
  const Model model = RandomModel(M8Shape());
  for (const size_t length : {2, 3, 7, 8, 9, 10, 15, 16, 17, 18, 24, 25, 40}) {
    for (size_t stride = 0; stride <= 8; ++stride) Check(model, Random(length).Tokens(length, 5), stride);
  }
}

TEST(Score, OtherContexts) {
  for (const size_t context : {1, 2, 3, 33}) {
    ModelShape shape = ModdShape();
    shape.context_length = context;
    const Model model = RandomModel(shape);
    for (const size_t length : {2, 33, 34, 35, 70}) {
      for (const size_t stride : {size_t{0}, size_t{1}, (context + 1) / 2})
        Check(model, Random(length).Tokens(length, 61), stride);
    }
  }
}

TEST(Score, ShortTextsHaveNothingToPredict) {
  const Model model = RandomModel(M8Shape());
  for (const std::vector<TokenId>& text : {std::vector<TokenId>{}, std::vector<TokenId>{3}}) {
    const Score score = ScoreText(model, Request(text));
    EXPECT_TRUE(score.log_probabilities.empty());
    EXPECT_EQ(score.nats, 0);
    EXPECT_EQ(score.error, "");
  }
}

// What generation reports of its own text is what scoring finds.
TEST(Score, AgreesWithGeneration) {
  const Model model = RandomModel(ModdShape());
  GenerateRequest request;
  request.prompt = {4, 9, 2};
  request.options.max_chars = 30;
  const Completion completion = Generate(model, request);
  std::vector<TokenId> text = request.prompt;
  for (const TokenId id : model.vocabulary().Encode(completion.text)) text.push_back(id);
  const Score score = ScoreText(model, Request(text));
  double sum = 0;
  for (size_t i = 2; i < score.log_probabilities.size(); ++i) sum += score.log_probabilities[i];
  EXPECT_EQ(sum, completion.log_probability);
}

TEST(Score, ProbabilitiesOfAllCharactersSumToOne) {
  const Model model = RandomModel(M8Shape());
  double sum = 0, bound = 0;
  for (TokenId id = 0; id < 5; ++id) {
    const double log_probability = ScoreText(model, Request({1, 2, 3, id})).log_probabilities[2],
                 p = std::exp(log_probability);
    sum += p;
    // LogSoftmax's bound (kernels/softmax.h): distances from the largest are at most |log p|, their mean at most the entropy ln 5.
    bound += p * (5 + kSoftmaxBound + std::log(5.0) + 7 * std::abs(log_probability)) * 0x1p-24;
  }
  EXPECT_TRUE(std::abs(sum - 1) <= bound) << sum;
}

TEST(Score, StridesOutOfRangeAreRefused) {
  const Model model = RandomModel(M8Shape());
  for (const size_t stride : {size_t{9}, size_t{1000}, ~size_t{0}}) {
    EXPECT_TRUE(Fails(
        [&] {
          ScoreText(model, Request({1, 2}, stride));
        },
        {"stride is " + std::to_string(stride), "1 to 8"}));
  }
  for (const size_t stride : {0, 1, 8}) CheckStride(model, stride);
}

TEST(Score, LogitsThatAreNotFiniteAreAnError) {
  Model model = RandomModel(M8Shape());
  const std::vector<TokenId> text = {1, 2, 3, 4, 0, 1};
  const auto score_with = [&](auto&& damage) {
    Weights weights = model.weights();
    damage(weights);
    return ScoreText(BuildModel(model.config(), model.vocabulary().entries(), std::move(weights)), Request(text));
  };
  const Score nan = score_with([](Weights& weights) { weights.wpe[3 * 16] = NAN; });
  EXPECT_NE(nan.error.find("not finite before character 5"), std::string::npos) << nan.error;
  EXPECT_TRUE(nan.log_probabilities.empty());
  EXPECT_EQ(nan.nats, 0);
  // Beyond float, as generation has it.
  const Score huge = score_with([](Weights& weights) {
    for (float& x : weights.lm_head) x = x < 0 ? -3e38f : 3e38f;
  });
  EXPECT_NE(huge.error.find("not finite before character 2"), std::string::npos) << huge.error;
}

TEST(Score, IdsOutsideTheVocabularyAreNamed) {
  const Model model = RandomModel(M8Shape());
  for (const TokenId bad : {-1, 5, 1 << 30}) {
    const Score score = ScoreText(model, Request({1, 2, bad, 3}));
    EXPECT_EQ(score.error, "token 3 is " + std::to_string(bad) + "; expected an id from 0 to 4");
    EXPECT_TRUE(score.log_probabilities.empty());
  }
}

// ---- many ----

TEST(ScoreAll, ThreadsChangeNothing) {
  const Model model = RandomModel(M8Shape());
  std::vector<ScoreRequest> requests;
  for (size_t i = 0; i < 60; ++i) {
    requests.push_back(Request(Random(i).Tokens(i * 3 % 50, 5), i % 9));
    requests.back().context = std::make_shared<size_t>(i);
    if (i % 20 == 7) requests.back().error = "bad line " + std::to_string(i);
  }
  for (const int threads : {1, 2, 3, 16}) {
    size_t next = 0, done = 0;
    ScoreAll(
        model, {.num_threads = threads},
        [&] { return next < requests.size() ? std::optional(requests[next++]) : std::nullopt; },
        [&](const ScoreRequest& request, Score&& score) {
          ASSERT_EQ(request.context, requests[done].context) << "out of order";
          const Score alone = ScoreText(model, requests[done]);
          EXPECT_TRUE(SameBits(score.log_probabilities, alone.log_probabilities));
          EXPECT_EQ(score.nats, alone.nats);
          EXPECT_EQ(score.error, requests[done].error);
          EXPECT_TRUE(score.error.empty() || score.log_probabilities.empty());
          ++done;
        });
    EXPECT_EQ(done, 60u);
  }
}

TEST(ScoreAll, WhatCallersThrowEndsTheRun) {
  const Model model = RandomModel(M8Shape());
  const auto next = [] { return std::optional(Request({1, 2, 3})); };
  EXPECT_THROW(
      ScoreAll(model, {.num_threads = 2}, next, [](const ScoreRequest&, Score&&) { throw std::runtime_error("full"); }),
      std::runtime_error);
  EXPECT_THROW(
      ScoreAll(
          model, {.num_threads = 2}, []() -> std::optional<ScoreRequest> { throw std::runtime_error("broken"); },
          [](const ScoreRequest&, Score&&) {}),
      std::runtime_error);
}

}  // namespace
}  // namespace octavo::test
