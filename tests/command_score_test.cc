// octavo score: the numbers against golden logits, windows, added characters, forms of input, records and the closing line.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <regex>

#include "engine/safetensors.h"
#include "engine/utf8.h"
#include "tests/testing/command_checks.h"

namespace octavo::test {
namespace {

const std::string kModel = Golden("m8.safetensors");  // \n, space, a, b, c; context 8
const Arguments kLines = {"score", "-", "--model", kModel, "--per-char"};
const Arguments kDocument = kLines + Arguments{"--document"};
const std::string kLong = "a cab\nba cc abacab cabba\nabc bca";  // 32 characters

std::vector<double> LogProbabilities(const Arguments& arguments, const std::string& input) {
  return Records(RunWell(arguments, {.input = input})).at(0).at("logprobs").get<std::vector<double>>();
}

void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected, double bound) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_LE(std::abs(found[i] - expected[i]), bound) << i;
}

// ln p of each token behind the first, from the logits that PyTorch computed in float64.
std::vector<double> GoldenLogProbabilities(const std::string& path) {
  const std::vector<std::byte> bytes = ReadFileBytes(path);
  const Safetensors file = ParseSafetensors(bytes, path);
  std::vector<int32_t> tokens;
  std::vector<double> logits;
  for (const Tensor& tensor : file.tensors) {
    const auto copy = [&](auto& to) {
      to.resize(tensor.num_elements());
      std::memcpy(to.data(), tensor.data.data(), tensor.data.size());
    };
    if (tensor.name == "tokens") copy(tokens);
    if (tensor.name == "logits") copy(logits);
  }
  const size_t vocabulary = logits.size() / tokens.size();
  std::vector<double> result;
  for (size_t i = 1; i < tokens.size(); ++i) {
    const double* row = logits.data() + (i - 1) * vocabulary;
    const double sum = std::accumulate(row, row + vocabulary, 0.0, [](double s, double x) { return s + std::exp(x); });
    result.push_back(row[tokens[i]] - std::log(sum));
  }
  return result;
}

TEST(Golden, EveryModelScoresItsTextAsPyTorchDoes) {
  const std::vector<Json> manifest = GoldenManifest();
  ASSERT_GE(manifest.size(), 8u);
  for (const Json& entry : manifest) {
    SCOPED_TRACE(entry.at("name"));
    const std::vector<double> expected = GoldenLogProbabilities(Golden(entry.at("expected")));
    const RunResult result = RunWell({"score", "-", "--document", "--per-char", "--model", Golden(entry.at("model"))},
                                     {.input = entry.at("text")});
    const Json record = Records(result).at(0);
    EXPECT_EQ(record.at("chars"), expected.size());
    ExpectNear(record.at("logprobs").get<std::vector<double>>(), expected, 1e-3);
    const double nats = -std::accumulate(expected.begin(), expected.end(), 0.0);
    const double nll = expected.empty() ? 0.0 : record.at("nll").get<double>();
    EXPECT_LE(std::abs(nll - nats), 1e-3 * (1 + nats));
  }
}

TEST(Records, HaveTheirKeysInOrder) {
  const Arguments arguments = {"score", "-", "--model", kModel};
  const std::vector<Json> records = Records(RunWell(arguments, {.input = "abc\ncab ab\n"}));
  ASSERT_EQ(records.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const double chars = i == 0 ? 2 : 5, nll = records[i].at("nll");
    EXPECT_EQ(records[i], Json({{"index", i},
                                {"text", i == 0 ? "abc" : "cab ab"},
                                {"chars", chars},
                                {"nll", nll},
                                {"nats_per_char", nll / chars}}));
    EXPECT_GT(nll, 0.0);
  }
  EXPECT_EQ(RunWell(arguments + Arguments{"--format", "jsonl"}, {.input = "abc\ncab ab\n"}).out,
            RunWell(arguments, {.input = "abc\ncab ab\n"}).out);
  const Json document = Records(RunWell(arguments + Arguments{"--document", "--per-char"}, {.input = "abc\n"})).at(0);
  const std::vector<double> each = document.at("logprobs");
  const double nll = document.at("nll");
  EXPECT_EQ(document, Json({{"index", 0}, {"chars", 3}, {"nll", nll}, {"nats_per_char", nll / 3}, {"logprobs", each}}));
  ASSERT_EQ(each.size(), 3u);
  EXPECT_LE(std::abs(each[0] + each[1] + each[2] + nll), 1e-12);
}

TEST(Records, NothingScoredGivesNull) {
  for (const char* input : {"\n", "a\n", "c"}) {
    const Json record = Records(RunWell(kLines, {.input = input})).at(0);
    EXPECT_EQ(record.at("chars"), 0);
    EXPECT_EQ(record.at("nll"), nullptr);
    EXPECT_EQ(record.at("nats_per_char"), nullptr);
    EXPECT_EQ(record.at("logprobs"), Json::array());
  }
  EXPECT_EQ(Records(RunWell(kLines)).size(), 0u) << "an empty file has no lines";
  const RunResult empty = RunWell(kDocument);
  EXPECT_EQ(Records(empty).at(0).at("nll"), nullptr);
  EXPECT_NE(empty.err.find("1 text, 0 characters, nothing scored"), std::string::npos) << empty.err;
}

TEST(Records, BadLinesAreErrorRecordsAndTheRunGoesOn) {
  const std::string input = "abc\nabx\na\xFF\ncab\n";
  const RunResult result = RunPartly(kLines + Arguments{"--start", " "}, {.input = input});
  const std::vector<Json> records = Records(result);
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[1], Json({{"index", 1},
                              {"text", "abx"},
                              {"chars", 0},
                              {"nll", nullptr},
                              {"nats_per_char", nullptr},
                              {"logprobs", Json::array()},
                              {"error", "character 3 is U+0078 'x', which the model's vocabulary lacks"},
                              {"line", 2}}));
  EXPECT_EQ(records[2].at("text"), "a\uFFFD");
  EXPECT_EQ(records[2].at("error"), "byte 1 (0xFF) is not UTF-8");
  EXPECT_EQ(records[3].at("chars"), 3);
  EXPECT_NE(result.err.find("octavo: standard input line 2: character 3"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("4 texts (2 failed), 6 characters"), std::string::npos) << result.err;
  const Json document = Records(RunPartly(kDocument, {.input = "ab\r\n"})).at(0);
  EXPECT_EQ(document.at("line"), nullptr);
  EXPECT_EQ(document.at("error"), "character 3 is U+000D '\\u000D', which the model's vocabulary lacks");
}

TEST(JsonTexts, AreReadAsLinesAre) {
  const TemporaryFolder folder;
  const std::string json = "{\"text\":\"abc\",\"other\":1}\n\n{\"text\":\"a\\nb\"}\n{\"text\":\"\"}\n";
  const Arguments arguments = {"score", folder.Write("in.jsonl", json), "--model", kModel, "--per-char"};
  const std::vector<Json> records = Records(RunWell(arguments));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(Column(records, "text"), (std::vector<Json>{"abc", "a\nb", ""}));
  EXPECT_EQ(Column(records, "index"), (std::vector<Json>{0, 1, 2}));
  EXPECT_EQ(records[0].at("logprobs").get<std::vector<double>>(), LogProbabilities(kLines, "abc\n"));
  EXPECT_EQ(records[1].at("logprobs").get<std::vector<double>>(), LogProbabilities(kDocument, "a\nb"));
  EXPECT_EQ(RunWell(kLines + Arguments{"--input-format", "jsonl"}, {.input = json}).out, RunWell(arguments).out);
  EXPECT_EQ(Records(RunPartly(arguments + Arguments{"--input-format", "lines"})).at(0).at("text"),
            json.substr(0, json.find('\n')));
  for (const char* bad :
       {"{\"text\":5}", "{\"prompt\":\"a\"}", "[]", "{\"text\":\"\xFF\"}", "{\"text\":\"\\ud800\"}", "{"}) {
    const std::vector<Json> lines = Records(
        RunPartly(kLines + Arguments{"--input-format", "jsonl"}, {.input = "\n" + std::string(bad) + "\n" + json}));
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_EQ(lines[0].at("text"), nullptr) << bad;
    EXPECT_EQ(lines[0].at("line"), 2) << bad;
    EXPECT_EQ(lines[3].at("index"), 3);
  }
}

TEST(JsonTexts, HardCharactersComeBackAsTheyWent) {
  const std::string text = "\"\\\t\x01\u2028é😀";
  const RunResult result = RunWell({"score", "-", "--model", Golden("modd"), "--per-char", "--input-format", "jsonl"},
                                   {.input = Json({{"text", text}}).dump() + "\n"});
  EXPECT_EQ(Records(result).at(0).at("text"), text);
  EXPECT_EQ(result.out.find("\u2028"), std::string::npos) << "some readers of lines end one there";
}

TEST(JsonTexts, UnknownKeysGetOneWarningEach) {
  std::string input = "{\"text\":\"a\"}\n";
  for (size_t i = 0; i < 20; ++i) input += "{\"text\":\"abc\",\"id\":1,\"txet\":\"b\"}\n";
  const Arguments arguments = kLines + Arguments{"--input-format", "jsonl"};
  const std::vector<std::string> messages = Lines(RunWell(arguments, {.input = input}).err);
  ASSERT_EQ(messages.size(), 3u) << "two warnings and the closing line";
  EXPECT_EQ(messages[0], "octavo: standard input line 2: unknown key 'id' is ignored, here and further on");
  EXPECT_EQ(messages[1], "octavo: standard input line 2: unknown key 'txet' is ignored, here and further on");
  EXPECT_EQ(RunWell(arguments + Arguments{"--quiet"}, {.input = input}).err, "");
}

TEST(Lines, EndInAnyWayAndMayFollowAByteOrderMark) {
  const std::string expected = RunWell(kLines, {.input = "abc\n\nca\n"}).out;
  for (const char* input : {"abc\n\nca", "abc\r\n\r\nca\r\n",
                            "\xEF\xBB\xBF"
                            "abc\n\nca\n"}) {
    EXPECT_EQ(RunWell(kLines, {.input = input}).out, expected);
  }
  EXPECT_EQ(LogProbabilities(kDocument,
                             "\xEF\xBB\xBF"
                             "abc"),
            LogProbabilities(kDocument, "abc"));
}

// The log-probabilities of several texts, in one run.
std::vector<std::vector<double>> ScoreAll(const std::vector<std::string>& texts, const Arguments& flags) {
  std::string input;
  for (const std::string& text : texts) input += Json({{"text", text}}).dump() + "\n";
  std::vector<std::vector<double>> scores;
  for (const Json& record : Records(RunWell(kLines + Arguments{"--input-format", "jsonl"} + flags, {.input = input}))) {
    scores.push_back(record.at("logprobs"));
  }
  return scores;
}

TEST(Windows, PredictEachCharacterOnceFromTheRightWindow) {
  // Eight characters from each place on, and the successor of the last: what a window there says, without windows.
  std::vector<std::string> parts, texts;
  for (size_t begin = 0; begin < kLong.size(); ++begin) parts.push_back(kLong.substr(begin, 9));
  for (size_t length = 2; length <= kLong.size(); ++length) texts.push_back(kLong.substr(0, length));
  const std::vector<std::vector<double>> windows = ScoreAll(parts, {});
  for (size_t stride = 1; stride <= 8; ++stride) {
    const std::vector<std::vector<double>> scores = ScoreAll(texts, {"--stride", std::to_string(stride)});
    ASSERT_EQ(scores.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      // The first window that predicts a character counts.
      std::vector<double> expected;
      for (size_t begin = 0; expected.size() + 1 < texts[i].size(); begin += stride) {
        for (size_t at = expected.size(); at < std::min(begin + 8, texts[i].size() - 1); ++at) {
          expected.push_back(windows[begin][at - begin]);
        }
      }
      SCOPED_TRACE(std::to_string(stride) + " " + texts[i]);
      ExpectNear(scores[i], expected, 1e-6);
    }
  }
}

TEST(Windows, DefaultIsTheContextAndLongLinesAreDocuments) {
  const std::vector<double> expected = LogProbabilities(kDocument + Arguments{"--stride", "8"}, kLong);
  EXPECT_EQ(LogProbabilities(kDocument, kLong), expected);
  std::string line = kLong;
  for (char& c : line) c = c == '\n' ? ' ' : c;
  for (const char* stride : {"3", "8"}) {
    const Arguments flag = {"--stride", stride};
    EXPECT_EQ(LogProbabilities(kLines + flag, line + "\n"), LogProbabilities(kDocument + flag, line));
  }
  EXPECT_NE(LogProbabilities(kDocument + Arguments{"--stride", "3"}, kLong), expected);
}

TEST(AddedCharacters, AreScoredWithTheText) {
  const auto scored = [](const Arguments& flags) { return LogProbabilities(kLines + flags, "cab\n"); };
  EXPECT_EQ(scored({"--start", "b"}), LogProbabilities(kDocument, "bcab"));
  EXPECT_EQ(scored({"--end", "b"}), LogProbabilities(kDocument, "cabb"));
  EXPECT_EQ(scored({"--start", "\\n", "--end", "\\n", "--escape"}), LogProbabilities(kDocument, "\ncab\n"));
  EXPECT_EQ(scored({"--start", "\n", "--end", " "}), LogProbabilities(kDocument, "\ncab "));
  EXPECT_EQ(LogProbabilities(kLines + Arguments{"--start", "a", "--end", "b"}, "\n"),
            LogProbabilities(kDocument, "ab"));
  EXPECT_EQ(LogProbabilities(kDocument + Arguments{"--end", "a"}, kLong), LogProbabilities(kDocument, kLong + "a"));
  const Json record = Records(RunWell(kLines + Arguments{"--start", "b", "--end", "c"}, {.input = "ab\n"})).at(0);
  EXPECT_EQ(record.at("text"), "ab");
  EXPECT_EQ(record.at("chars"), 3);
}

TEST(Threads, ChangeNothing) {
  std::string input;
  for (size_t i = 0; i < 60; ++i) input += kLong.substr(i % 17, i % 16) + "\n";
  const std::string expected = RunWell(kLines + Arguments{"--threads", "1"}, {.input = input}).out;
  const std::string document = RunWell(kDocument + Arguments{"--threads", "1", "--stride", "2"}, {.input = input}).out;
  for (const char* threads : {"2", "3", "16"}) {
    EXPECT_EQ(RunWell(kLines + Arguments{"--threads", threads}, {.input = input}).out, expected);
    EXPECT_EQ(RunWell(kDocument + Arguments{"--threads", threads, "--stride", "2"}, {.input = input}).out, document);
  }
}

TEST(ClosingLine, HasTheMeanOverAllCharacters) {
  const RunResult result = RunWell(kLines + Arguments{"--threads", "1"}, {.input = "abcabca\ncc\n\n"});
  double nats = 0, chars = 0;
  for (const Json& record : Records(result)) {
    chars += record.at("chars").get<double>();
    for (const double x : record.at("logprobs").get<std::vector<double>>()) nats -= x;
  }
  const std::string line = Lines(result.err).back();
  std::smatch match;
  ASSERT_TRUE(std::regex_match(line, match,
                               std::regex("octavo: 3 texts, 7 characters, (\\S+) nats a character \\((\\S+) bits\\), "
                                          "perplexity (\\S+), \\d+\\.\\d{3} s, \\d+ characters a second, 1 thread, "
                                          "target \\S+")))
      << line;
  EXPECT_EQ(chars, 7);
  EXPECT_LE(std::abs(std::stod(match[1]) - nats / chars), 1e-4);
  EXPECT_LE(std::abs(std::stod(match[2]) - nats / chars / std::numbers::ln2), 1e-4);
  EXPECT_LE(std::abs(std::stod(match[3]) - std::exp(nats / chars)), 1e-3);
}

}  // namespace
}  // namespace octavo::test
