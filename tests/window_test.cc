// Beyond the context: the three window rules against passes without a cache, at every step.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/generate.h"
#include "tests/testing/compare.h"
#include "tests/testing/models.h"
#include "tests/testing/naive_text.h"

namespace octavo::test {
namespace {

struct Rule {
  const char* name;
  Overflow overflow;
};
constexpr Rule kRules[] = {{"slide", Overflow::kSlide}, {"restart", Overflow::kRestart}, {"stop", Overflow::kStop}};

GenerateRequest Request(std::vector<TokenId> prompt, uint64_t max_chars, Overflow overflow, double temperature = 1) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.options.max_chars = max_chars;
  request.options.overflow = overflow;
  request.options.sampling.temperature = temperature;
  request.seed = 7;
  return request;
}

::testing::AssertionResult EqualsNaive(const Model& model, const GenerateRequest& request,
                                       KvPrecision kv = KvPrecision::kF32) {
  const Completion actual = Generate(model, request, nullptr, {.kv = kv});
  const Completion expected =
      kv == KvPrecision::kF32 ? NaiveGenerate(model, request) : NaiveGenerate(model, request, Bf16Logits);
  if (actual.text != expected.text) {
    return ::testing::AssertionFailure() << "'" << actual.text << "'; expected '" << expected.text << "'";
  }
  if (actual.finish != expected.finish || actual.num_chars != expected.num_chars) {
    return ::testing::AssertionFailure() << actual.num_chars << " characters, expected " << expected.num_chars
                                         << ", or another way to finish";
  }
  const double bound = kLogProbabilityBound * static_cast<double>(expected.num_chars);
  return Within(std::vector{actual.log_probability}, std::vector{expected.log_probability}, bound);
}

TEST(Window, M8FromAShortPrompt) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Model model = RandomModel(M8Shape(), seed);
    const std::vector<TokenId> prompt = model.vocabulary().Encode("abcabc");
    for (const Rule& rule : kRules) {
      for (const double temperature : {0.0, 1.0}) {
        EXPECT_TRUE(EqualsNaive(model, Request(prompt, 12, rule.overflow, temperature))) << rule.name;
      }
    }
  }
}

TEST(Window, PromptsAroundTheContext) {
  const Model model = RandomModel(M8Shape(), 2);
  for (const size_t length : {0, 1, 2, 7, 8, 9, 15, 16, 17, 20}) {
    const std::vector<TokenId> prompt = Random(length).Tokens(length, 5);
    for (const Rule& rule : kRules) {
      for (const uint64_t max_chars : {0, 1, 2, 9, 30}) {
        EXPECT_TRUE(EqualsNaive(model, Request(prompt, max_chars, rule.overflow)))
            << rule.name << ", prompt of " << length << ", " << max_chars << " characters";
      }
    }
  }
}

TEST(Window, EveryContextLength) {
  for (const size_t context : {1, 2, 3, 4, 5, 9}) {
    ModelShape shape = M8Shape();
    shape.context_length = context;
    const Model model = RandomModel(shape, context);
    for (const Rule& rule : kRules) {
      for (const size_t length : {1, 3, 12}) {
        EXPECT_TRUE(EqualsNaive(model, Request(Random(length).Tokens(length, 5), 25, rule.overflow)))
            << rule.name << ", context " << context << ", prompt of " << length;
      }
    }
  }
}

TEST(Window, OddModel) {
  const Model model = RandomModel(ModdShape());
  for (const Rule& rule : kRules) {
    EXPECT_TRUE(EqualsNaive(model, Request(Random(1).Tokens(30, 61), 40, rule.overflow, 0.8))) << rule.name;
  }
}

// With a 16-bit cache too, what a character reads are the rounded keys and values of its own seats.
TEST(Window, SixteenBitCache) {
  int different = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Model model = RandomModel(M8Shape(), seed);
    for (const Rule& rule : kRules) {
      for (const size_t length : {1, 6, 8, 9, 20}) {
        const GenerateRequest request = Request(Random(length).Tokens(length, 5), 25, rule.overflow);
        EXPECT_TRUE(EqualsNaive(model, request, KvPrecision::kBf16)) << rule.name << ", prompt of " << length;
        different += Generate(model, request, nullptr, {.kv = KvPrecision::kBf16}).log_probability !=
                     Generate(model, request).log_probability;
      }
    }
  }
  EXPECT_GE(different, 40) << "of 60, of which 8 are empty: the precision is not taken";
}

// p prompt characters give at most T - p + 1 new ones, and a longer prompt none.
TEST(Window, StopCountsSeats) {
  const Model model = RandomModel(M8Shape(), 3);
  for (size_t length = 1; length <= 10; ++length) {
    const Completion completion = Generate(model, Request(Random(length).Tokens(length, 5), 100, Overflow::kStop));
    EXPECT_EQ(completion.num_chars, length > 8 ? 0 : 8 - length + 1);
    EXPECT_EQ(completion.finish, Finish::kContext);
  }
  // The last character that fits is the last asked for: that is the length asked for, not the context's end.
  EXPECT_EQ(Generate(model, Request({1, 2}, 7, Overflow::kStop)).finish, Finish::kLength);
  EXPECT_EQ(Generate(model, Request({1, 2}, 8, Overflow::kStop)).finish, Finish::kContext);
}

// What slide forgets is forgotten: texts that differ only before the last T characters go on alike.
TEST(Window, SlideReadsTheLastCharactersOnly) {
  const Model model = RandomModel(M8Shape(), 4);
  std::vector<TokenId> prompt = Random(5).Tokens(20, 5);
  const Completion before = Generate(model, Request(prompt, 30, Overflow::kSlide));
  prompt[11] = (prompt[11] + 1) % 5;
  EXPECT_EQ(Generate(model, Request(prompt, 30, Overflow::kSlide)).text, before.text);
  EXPECT_EQ(Generate(model, Request(prompt, 30, Overflow::kRestart)).text,
            Generate(model, Request({prompt.end() - 8, prompt.end()}, 30, Overflow::kRestart)).text);
}

// The three rules agree until the context is full, and are not the same rule afterwards.
TEST(Window, RulesDifferOnlyBeyondTheContext) {
  int different = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Model model = RandomModel(M8Shape(), seed);
    const std::string slide = Generate(model, Request({1, 2, 3}, 40, Overflow::kSlide)).text;
    const std::string restart = Generate(model, Request({1, 2, 3}, 40, Overflow::kRestart)).text;
    const std::string stop = Generate(model, Request({1, 2, 3}, 40, Overflow::kStop)).text;
    EXPECT_EQ(stop.size(), 6u);
    EXPECT_EQ(slide.substr(0, 6), stop);
    EXPECT_EQ(restart.substr(0, 6), stop);
    different += slide != restart;
  }
  EXPECT_GE(different, 8);
}

}  // namespace
}  // namespace octavo::test
