// octavo generate: same seed, same text; parts of runs; seeds of prompts; and the edges of temperature, top-k and top-p.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/testing/command_checks.h"

namespace octavo::test {
namespace {

const Arguments kM8 = {"generate", "--model", Golden("m8.safetensors")};  // \n, space, a, b, c; context 8
const Arguments kJson = {"--format", "jsonl", "--quiet"};

std::vector<std::string> TextsOf(const Arguments& arguments, const std::string& input = "") {
  return Texts(RunWell(arguments + kJson, {.input = input}));
}

TEST(SameSeed, SameBytesWhateverTheThreads) {
  std::string prompts;
  for (size_t i = 0; i < 37; ++i) prompts += std::string("abc ab cabcabc bcab").substr(i % 7, 1 + i % 12) + "\n";
  const Arguments arguments = kM8 + kJson + Arguments{"--prompts", "-", "--seed", "7", "--max-chars", "24"};
  const std::string expected = RunWell(arguments, {.input = prompts}).out;
  EXPECT_EQ(Lines(expected).size(), 37u);
  for (const char* threads : {"1", "2", "3", "16", "256", "1", "2", "3", "16", "256"}) {
    EXPECT_EQ(RunWell(arguments + Arguments{"--threads", threads}, {.input = prompts}).out, expected) << threads;
  }
  EXPECT_NE(RunWell(arguments + Arguments{"--seed", "8"}, {.input = prompts}).out, expected);
}

TEST(SameSeed, SamplesAndPromptsDrawTheirOwn) {
  const std::vector<std::string> texts =
      TextsOf(kM8 + Arguments{"--prompt", "a", "--prompt", "a", "--samples", "20", "--max-chars", "40"});
  EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()).size(), 40u);
}

TEST(NoSeed, ThePrintedOneReproducesTheRun) {
  const Arguments arguments = kM8 + Arguments{"--samples", "3", "--max-chars", "60", "--format", "lines"};
  std::set<std::string> runs;
  for (size_t i = 0; i < 3; ++i) {
    const RunResult result = RunWell(arguments);
    const std::string first = Lines(result.err).at(0), prefix = "octavo: seed ";
    ASSERT_TRUE(first.starts_with(prefix)) << result.err;
    EXPECT_EQ(RunWell(arguments + Arguments{"--seed", first.substr(prefix.size())}).out, result.out);
    runs.insert(result.out);
  }
  EXPECT_EQ(runs.size(), 3u) << "a seed of its own for each run";
  EXPECT_EQ(RunWell(arguments + Arguments{"--seed", "3"}).err.find("seed"), std::string::npos);
}

// 8 prompts, the third and the sixth of which fail: by a bad line, and by an unknown character.
const std::vector<std::string> kWhole = {R"({"prompt":"a"})",
                                         R"({"prompt":"","samples":4})",
                                         R"({"prompt":)",
                                         R"({"prompt":"abc"})",
                                         R"({"prompt":"b","seed":9})",
                                         R"({"prompt":"x"})",
                                         R"({"prompt":"c","max_chars":7})",
                                         R"({"prompt":"ca"})"};

TEST(First, APartDrawsWhatTheWholeDraws) {
  const auto run = [](size_t from, const std::string& first) {
    std::string input;
    for (size_t i = from; i < kWhole.size(); ++i) input += kWhole[i] + "\n";
    const Arguments arguments = kM8 + kJson + Arguments{"--prompts", "-", "--input-format", "jsonl", "--seed",  "5",
                                                        "--samples", "2", "--max-chars",    "30",    "--first", first};
    return Texts(RunPartly(arguments, {.input = input}));
  };
  const std::vector<std::string> whole = run(0, "0");
  ASSERT_EQ(whole.size(), 2u + 4 + 1 + 2 + 2 + 1 + 2 + 2);
  // Prompts before each part take 2, 4, 1 (a bad line), 2, 2 and 2 (one that fails) numbers.
  const std::vector<std::pair<size_t, std::string>> parts = {{1, "2"}, {2, "6"}, {3, "7"}, {4, "9"}, {5, "11"}};
  for (const auto& [from, first] : parts) {
    const std::vector<std::string> part = run(from, first);
    EXPECT_EQ(part, std::vector<std::string>(whole.end() - static_cast<std::ptrdiff_t>(part.size()), whole.end()))
        << from;
  }
  const std::vector<std::string> last =
      TextsOf(kM8 + Arguments{"--prompt", "c", "--seed", "5", "--first", "13", "--max-chars", "7"});
  EXPECT_EQ(last.at(0), whole.at(12));
  EXPECT_NE(run(3, "8"), run(3, "7"));
}

TEST(OwnSeed, CountsWhereverThePromptStands) {
  const std::string own = R"({"prompt":"ab","seed":12345678901234567890,"samples":3})"
                          "\n";
  const std::string other = R"({"prompt":""})"
                            "\n"
                            R"({"prompt":"abcabcabcabc"})"
                            "\n";
  const Arguments arguments = kM8 + Arguments{"--prompts", "-", "--input-format", "jsonl", "--max-chars", "30"};
  const std::vector<std::string> alone = TextsOf(arguments, own);
  ASSERT_EQ(alone.size(), 3u);
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_EQ(alone, TextsOf(kM8 + Arguments{"--prompt", "ab", "--seed", "12345678901234567890", "--samples", "3",
                                           "--max-chars", "30"}));
  for (const char* seed : {"1", "2"}) {
    const std::vector<std::string> texts =
        TextsOf(arguments + Arguments{"--seed", seed, "--first", seed}, other + own + other + own);
    ASSERT_EQ(texts.size(), 10u);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), texts.begin() + 2));
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), texts.begin() + 7));
  }
}

TEST(OwnSeed, NeighboursDoNotChange) {
  const std::string a = R"({"prompt":"a","seed":1})"
                        "\n",
                    b = R"({"prompt":"abcabcab","seed":2})"
                        "\n",
                    empty = R"({"prompt":"","seed":3})"
                            "\n";
  const Arguments arguments = kM8 + Arguments{"--prompts", "-", "--input-format", "jsonl", "--max-chars", "30"};
  const std::string text_a = TextsOf(arguments, a).at(0), text_b = TextsOf(arguments, b).at(0),
                    text_empty = TextsOf(arguments, empty).at(0);
  EXPECT_EQ(TextsOf(arguments, empty + a + b), (std::vector<std::string>{text_empty, text_a, text_b}));
  EXPECT_EQ(TextsOf(arguments, b + empty + a), (std::vector<std::string>{text_b, text_empty, text_a}));
  EXPECT_EQ(TextsOf(arguments, a + b + empty), (std::vector<std::string>{text_a, text_b, text_empty}));
  std::vector<std::string> many = {text_a, text_b};
  std::string input = a + b;
  for (size_t i = 0; i < 40; ++i) {
    input += a;
    many.push_back(text_a);
  }
  EXPECT_EQ(TextsOf(arguments, input), many);
}

TEST(Greedy, HasManyNames) {
  const Arguments arguments = kM8 + Arguments{"--prompt", "ab", "--max-chars", "60", "--seed", "1"};
  const std::vector<std::string> greedy = TextsOf(arguments + Arguments{"--temperature", "0"});
  for (const Arguments& same : std::vector<Arguments>{{"--temperature", "-0"},
                                                      {"--temperature", "1e-30"},
                                                      {"--temperature", "1e-300"},
                                                      {"--temperature", "0.0", "--seed", "99"},
                                                      {"--top-k", "1"},
                                                      {"--top-p", "1e-9"},
                                                      {"--top-p", "1e-300"},
                                                      {"--temperature", "0", "--top-k", "3", "--top-p", "0.5"}}) {
    EXPECT_EQ(TextsOf(arguments + same), greedy) << Show(same);
  }
  EXPECT_NE(TextsOf(arguments), greedy);
}

TEST(Cuts, ThatKeepAllChangeNothing) {
  const Arguments arguments = kM8 + Arguments{"--max-chars", "60", "--seed", "1", "--samples", "3"};
  const std::vector<std::string> all = TextsOf(arguments);
  for (const Arguments& same : std::vector<Arguments>{{"--top-k", "0"},
                                                      {"--top-k", "5"},
                                                      {"--top-k", "6"},
                                                      {"--top-k", "100000"},
                                                      {"--top-k", "2147483649"},
                                                      {"--top-k", "4294967297"},
                                                      {"--top-k", "18446744073709551615"},
                                                      {"--top-p", "1"},
                                                      {"--top-p", "1.0"},
                                                      {"--temperature", "1"}}) {
    EXPECT_EQ(TextsOf(arguments + same), all) << Show(same);
  }
  // The same from a file of prompts.
  const Arguments from_file = arguments + Arguments{"--prompts", "-", "--input-format", "jsonl"};
  for (const char* k : {"0", "5", "4294967297", "18446744073709551615"}) {
    EXPECT_EQ(TextsOf(from_file, fmt::format("{{\"prompt\":\"\",\"top_k\":{}}}\n", k)), all) << k;
  }
  EXPECT_NE(TextsOf(from_file, "{\"prompt\":\"\",\"top_k\":1}\n"), all);
  EXPECT_NE(TextsOf(arguments + Arguments{"--top-k", "2"}), all);
  EXPECT_NE(TextsOf(arguments + Arguments{"--top-p", "0.6"}), all);
  EXPECT_NE(TextsOf(arguments + Arguments{"--temperature", "0.7"}), all);
}

// How often each character comes first.
std::map<std::string, size_t> FirstCharacters(const Arguments& arguments) {
  std::map<std::string, size_t> counts;
  for (const std::string& text :
       TextsOf(kM8 + Arguments{"--samples", "1000", "--max-chars", "1", "--seed", "1"} + arguments)) {
    ++counts[text];
  }
  return counts;
}

TEST(Cuts, KeepExactlyTheKLikeliest) {
  const Arguments even = {"--temperature", "1e30"};
  const std::map<std::string, size_t> all = FirstCharacters(even);
  ASSERT_EQ(all.size(), 5u);
  for (const auto& [character, count] : all) {
    EXPECT_GT(count, 140u) << "all are alike at temperature 1e30";
    EXPECT_LT(count, 260u);
  }
  for (size_t k = 1; k <= 4; ++k) EXPECT_EQ(FirstCharacters(even + Arguments{"--top-k", std::to_string(k)}).size(), k);
  // Five alike: the smallest set that reaches 0.5 has three.
  EXPECT_EQ(FirstCharacters(even + Arguments{"--top-p", "0.5"}).size(), 3u);
  EXPECT_EQ(FirstCharacters(even + Arguments{"--top-p", "0.5", "--top-k", "4"}).size(), 2u) << "renormalised";
}

TEST(Cuts, FollowTheModelsProbabilities) {
  // What score says of each character behind the start character, and what is drawn at temperature 1 and 2.
  const RunResult scored =
      RunWell({"score", "-", "--model", Golden("m8.safetensors"), "--start", "\n"}, {.input = " \na\nb\nc\n"});
  std::map<std::string, double> probability;
  double rest = 1, sum_of_roots = 0;
  for (const Json& record : Records(scored)) {
    rest -= probability[record.at("text")] = std::exp(-record.at("nll").get<double>());
  }
  probability["\n"] = rest;
  for (const auto& [character, p] : probability) sum_of_roots += std::sqrt(p);
  const std::map<std::string, size_t> plain = FirstCharacters({}), warm = FirstCharacters({"--temperature", "2"});
  for (const auto& entry : probability) {
    const std::string& character = entry.first;
    const double p = entry.second;
    const auto count = [&](const std::map<std::string, size_t>& counts) {
      return counts.contains(character) ? static_cast<double>(counts.at(character)) : 0.0;
    };
    // Within five standard deviations.
    const auto expect = [&](double drawn, double q) {
      EXPECT_LE(std::abs(drawn - 1000 * q), 5 * std::sqrt(1000 * q * (1 - q)) + 1) << character << ' ' << q;
    };
    expect(count(plain), p);
    expect(count(warm), std::sqrt(p) / sum_of_roots);
  }
}

TEST(LogProbability, IsTheModelsOwnWhateverTheSampling) {
  const std::string prompt = "ab";
  for (const Arguments& flags :
       std::vector<Arguments>{{}, {"--temperature", "3"}, {"--temperature", "0"}, {"--top-k", "2"}}) {
    const Arguments arguments = kM8 + kJson + Arguments{"--prompt", prompt, "--max-chars", "6", "--seed", "2"} + flags;
    const Json record = Records(RunWell(arguments)).at(0);
    const std::string text = record.at("text");
    const Json scored = Records(RunWell({"score", "-", "--model", Golden("m8.safetensors"), "--document", "--per-char"},
                                        {.input = prompt + text}))
                            .at(0);
    double sum = 0;
    for (size_t i = 1; i <= 6; ++i) sum += scored.at("logprobs").at(i).get<double>();
    EXPECT_LE(std::abs(record.at("logprob").get<double>() - sum), 1e-4) << Show(flags);
    // Of the printed characters only: what a stop string cuts off does not count.
    const Json cut = Records(RunWell(arguments + Arguments{"--stop", text.substr(3)})).at(0);
    sum = 0;
    for (size_t i = 1; i <= cut.at("chars").get<size_t>(); ++i) sum += scored.at("logprobs").at(i).get<double>();
    EXPECT_LE(cut.at("chars").get<size_t>(), 3u);
    EXPECT_LE(std::abs(cut.at("logprob").get<double>() - sum), 1e-4) << Show(flags);
  }
}

}  // namespace
}  // namespace octavo::test
