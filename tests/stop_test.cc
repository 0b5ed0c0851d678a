// Where a text ends: stop strings, streamed and not, end tokens, and what is held back meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/generate.h"
#include "engine/stop_matcher.h"
#include "tests/testing/compare.h"
#include "tests/testing/errors.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

struct Streamed {
  Completion completion;
  std::vector<std::string> pieces;
};

// Generates with and without streaming; the two must agree and the pieces make up the text.
Streamed RunBoth(const Model& model, const GenerateRequest& request) {
  Streamed result;
  const Completion plain = Generate(model, request);
  result.completion = Generate(model, request, [&](std::string_view piece) { result.pieces.emplace_back(piece); });
  std::string joined;
  for (const std::string& piece : result.pieces) {
    EXPECT_FALSE(piece.empty());
    EXPECT_EQ(ReplaceInvalidUtf8(piece), piece);
    joined += piece;
  }
  EXPECT_EQ(joined, result.completion.text);
  EXPECT_EQ(plain.text, result.completion.text);
  EXPECT_EQ(plain.finish, result.completion.finish);
  EXPECT_EQ(plain.num_chars, result.completion.num_chars);
  EXPECT_EQ(plain.num_chars, DecodeUtf8(plain.text).size());
  EXPECT_EQ(plain.log_probability, result.completion.log_probability);
  return result;
}

GenerateRequest Greedy(std::vector<std::string> stops, uint64_t max_chars) {
  GenerateRequest request;
  request.options.sampling.temperature = 0;
  request.options.stops = std::move(stops);
  request.options.max_chars = max_chars;
  return request;
}

class StopTest : public ::testing::Test {
 protected:
  const Model model_ = ScriptedModel("\n abcX", "abcab\nabc");

  Streamed Write(std::vector<std::string> stops, uint64_t max_chars = 9) const {
    return RunBoth(model_, Greedy(std::move(stops), max_chars));
  }
};

TEST_F(StopTest, TheScriptIsWritten) {
  const Streamed all = Write({});
  EXPECT_EQ(all.completion.text, "abcab\nabc");
  EXPECT_EQ(all.completion.finish, Finish::kLength);
  EXPECT_EQ(all.pieces, Characters("abcab\nabc")) << "each character at once";
}

struct Case {
  std::vector<std::string> stops;
  std::string text;
  std::vector<std::string> pieces;
};

TEST_F(StopTest, CutsBeforeTheLeftmostMatch) {
  const Case cases[] = {
      {{"\n"}, "abcab", {"a", "b", "c", "a", "b"}},
      {{"bca"}, "a", {"a"}},
      {{"ab", "abc"}, "", {}},
      {{"abc", "ab"}, "", {}},
      {{"a"}, "", {}},
      {{"c"}, "ab", {"a", "b"}},
      {{"b\n", "ab\n", "\n"}, "abc", {"abc"}},  // three end together: the longest begins leftmost
      {{"\n", "b\n"}, "abca", {"a", "bc", "a"}},
      {{"cab\nab"}, "ab", {"a", "b"}},
      {{"abcab\nabc"}, "", {}},
      {{"bc", "a\n", "cab"}, "a", {"a"}},
  };
  for (const Case& c : cases) {
    const Streamed result = Write(c.stops);
    EXPECT_EQ(result.completion.text, c.text) << Quote(c.stops[0]);
    EXPECT_EQ(result.completion.finish, Finish::kStop) << Quote(c.stops[0]);
    EXPECT_EQ(result.completion.num_chars, c.text.size());
    EXPECT_EQ(result.pieces, c.pieces) << Quote(c.stops[0]);
  }
}

// What might have begun a stop string is shown once it cannot any more, and at the end.
TEST_F(StopTest, HeldBackPrefixesAreFlushed) {
  const Streamed missed = Write({"abcabX"});
  EXPECT_EQ(missed.completion.text, "abcab\nabc");
  EXPECT_EQ(missed.completion.finish, Finish::kLength);
  EXPECT_EQ(missed.pieces, (std::vector<std::string>{"abcab\n", "abc"}));
  EXPECT_EQ(Write({"X"}).pieces, Characters("abcab\nabc"));
  EXPECT_EQ(Write({"abX"}).pieces, (std::vector<std::string>{"abc", "ab\n", "abc"}));
  EXPECT_EQ(Write({"bcX", "caX"}).pieces, (std::vector<std::string>{"a", "b", "ca", "b\n", "a", "bc"}));
  // The length cuts inside of a prefix.
  const Streamed cut = Write({"abcabX"}, 4);
  EXPECT_EQ(cut.completion.text, "abca");
  EXPECT_EQ(cut.pieces, std::vector<std::string>{"abca"});
}

TEST_F(StopTest, AStopCompletedByTheLastCharacterCounts) {
  EXPECT_EQ(Write({"cab"}, 5).completion.finish, Finish::kStop);
  EXPECT_EQ(Write({"cab"}, 5).completion.text, "ab");
  EXPECT_EQ(Write({"cab"}, 4).completion.finish, Finish::kLength);
  EXPECT_EQ(Write({"cab"}, 4).completion.text, "abca");
}

TEST_F(StopTest, ThePromptTakesNoPart) {
  GenerateRequest request = Greedy({"Xb"}, 4);
  request.prompt = model_.vocabulary().Encode("X");
  EXPECT_EQ(RunBoth(model_, request).completion.text, "abca");
  request.options.stops = {"Xa"};
  EXPECT_EQ(RunBoth(model_, request).completion.text, "abca");
}

TEST_F(StopTest, StopsOutsideOfTheVocabularyNeverMatch) {
  EXPECT_EQ(Write({"€", "abcab\nabcé"}).completion.text, "abcab\nabc");
}

TEST_F(StopTest, BadStopsAreRefused) {
  EXPECT_TRUE(Fails([&] { Write({"a", ""}); }, {"a stop string is empty"}));
  EXPECT_TRUE(Fails([&] { Write({"\xFF"}); }, {"stop string", "not UTF-8"}));
  EXPECT_TRUE(Fails([&] { Write({"a\xC3"}); }, {"stop string", "byte 1", "not UTF-8"}));
}

// é and è share their first byte, € and ₭ their first two.
TEST(Stop, CharactersOfSeveralBytes) {
  const Model model = ScriptedModel("éè€₭😀", "éè€é₭😀");
  const auto run = [&](std::vector<std::string> stops) {
    return RunBoth(model, Greedy(std::move(stops), 6)).completion;
  };
  EXPECT_EQ(run({"è"}).text, "é");
  EXPECT_EQ(run({"₭"}).text, "éè€é");
  EXPECT_EQ(run({"₭"}).num_chars, 4u);
  EXPECT_EQ(run({"€é₭"}).text, "éè");
  EXPECT_EQ(run({"€é₭"}).num_chars, 2u);
  EXPECT_EQ(run({"€é€"}).text, "éè€é₭😀");
  EXPECT_EQ(run({"😀"}).num_chars, 5u);
}

// Texts of two letters meet every overlap. The definition: the first place where any stop is complete; the longest there is cut.
TEST(Stop, RandomStopsFollowTheDefinition) {
  const Model model = RandomModel({Characters("ab"), 16, 1, 2, 8}, 5);
  Random random(1);
  int stopped = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    GenerateRequest request;
    request.seed = i;
    request.options.max_chars = 24;
    const Completion whole = Generate(model, request);
    for (size_t n = 1 + random.Below(3); n > 0; --n) {
      std::string& stop = request.options.stops.emplace_back();
      for (size_t size = 1 + random.Below(7); size > 0; --size) stop += random.Below(2) ? 'a' : 'b';
    }
    std::string expected = whole.text;
    for (size_t end = 1; end <= whole.text.size() && expected == whole.text; ++end) {
      size_t longest = 0;
      for (const std::string& stop : request.options.stops) {
        if (whole.text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
      }
      if (longest > 0) expected = whole.text.substr(0, end - longest);
    }
    const Streamed result = RunBoth(model, request);
    EXPECT_EQ(result.completion.text, expected);
    EXPECT_EQ(result.completion.finish, expected == whole.text ? Finish::kLength : Finish::kStop);
    stopped += expected != whole.text;
    // Only what is printed counts.
    GenerateRequest same_length = request;
    same_length.options.stops.clear();
    same_length.options.max_chars = expected.size();
    EXPECT_EQ(result.completion.log_probability, Generate(model, same_length).log_probability);
  }
  EXPECT_TRUE(stopped > 100 && stopped < 400) << stopped;
}

TEST(StopMatcher, HoldsBackTheLongestPrefix) {
  const std::vector<std::string> stops = {"aab", "ba"};
  const StopMatcher matcher(stops);
  for (const auto& [text, held] : std::vector<std::pair<std::string, size_t>>{
           {"", 0}, {"a", 1}, {"aa", 2}, {"aaa", 2}, {"b", 1}, {"ab", 1}, {"x", 0}, {"aax", 0}}) {
    EXPECT_EQ(matcher.HeldBackBytes(text), held) << text;
  }
  EXPECT_EQ(matcher.CutBytes("xaab"), 3u);
  EXPECT_EQ(matcher.CutBytes("xab"), 0u);
  EXPECT_EQ(matcher.CutBytes(""), 0u);
}

// ---- special tokens ----

// pad, a, b, bos, eos, c: only a, b and c print.
Model Special(const std::vector<TokenId>& script) {
  ModelConfig config;
  config.padding_tokens = {0};
  config.start_tokens = {3};
  config.end_tokens = {4};
  return ScriptedModel({"<pad>", "a", "b", "<bos>", "<eos>", "c"}, script, config);
}

TEST(SpecialTokens, EndTokensEndTheText) {
  const Streamed result = RunBoth(Special({1, 2, 4, 1}), Greedy({}, 2'000'000'000));
  EXPECT_EQ(result.completion.text, "ab");
  EXPECT_EQ(result.completion.finish, Finish::kStop);
  EXPECT_EQ(RunBoth(Special({4, 1, 2}), Greedy({}, 5)).completion.text, "");
  // Just in time, and just too late.
  EXPECT_EQ(RunBoth(Special({1, 2, 4, 1}), Greedy({}, 3)).completion.finish, Finish::kStop);
  EXPECT_EQ(RunBoth(Special({1, 2, 4, 1}), Greedy({}, 2)).completion.finish, Finish::kLength);
}

TEST(SpecialTokens, PaddingAndStartAreNeverPrinted) {
  const Streamed result = RunBoth(Special({1, 0, 2, 3, 5, 4}), Greedy({}, 100));
  EXPECT_EQ(result.completion.text, "abc");
  EXPECT_EQ(result.completion.num_chars, 3u);
  EXPECT_EQ(result.completion.finish, Finish::kStop);
  // They take their steps, though: the seats go on.
  EXPECT_EQ(RunBoth(Special({1, 0, 2, 3, 5, 4}), Greedy({}, 3)).completion.text, "ab");
}

TEST(SpecialTokens, HeldBackTextIsFlushedAtTheEnd) {
  const Streamed result = RunBoth(Special({1, 2, 4, 1}), Greedy({"abc"}, 100));
  EXPECT_EQ(result.completion.text, "ab");
  EXPECT_EQ(result.pieces, std::vector<std::string>{"ab"});
}

TEST(SpecialTokens, StopsSpanWhatIsNotPrinted) {
  EXPECT_EQ(RunBoth(Special({1, 0, 2, 5, 4}), Greedy({"ab"}, 100)).completion.text, "");
}

}  // namespace
}  // namespace octavo::test
