// octavo generate: what is printed, in its three formats; where texts end; how characters are chosen.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <regex>
#include <set>

#include "engine/utf8.h"
#include "tests/testing/command_checks.h"

namespace octavo::test {
namespace {

const Arguments kM8 = {"generate", "--model", Golden("m8.safetensors"), "--seed",
                       "1"};                                                     // \n, space, a, b, c; context 8
const Arguments kModd = {"generate", "--model", Golden("modd"), "--seed", "1"};  // 61 characters, hard ones too
const Arguments kEven = {"--temperature", "1e30"};                               // all characters alike
const Arguments kJson = {"--format", "jsonl"};

size_t NumChars(const std::string& text) { return DecodeUtf8(text).size(); }

// The one text of a run.
std::string Text(const Arguments& arguments) { return Texts(RunWell(arguments + kJson)).at(0); }

TEST(Formats, TextIsProseWithBlankLinesBetween) {
  const Arguments arguments = kM8 + Arguments{"--prompt", "ab", "--prompt", "", "--samples", "2", "--max-chars", "30"};
  const std::vector<std::string> texts = Texts(RunWell(arguments + kJson));
  ASSERT_EQ(texts.size(), 4u);
  const std::string expected = "ab" + texts[0] + "\n\nab" + texts[1] + "\n\n" + texts[2] + "\n\n" + texts[3] + "\n";
  EXPECT_EQ(RunWell(arguments).out, expected);
  EXPECT_EQ(RunWell(arguments + Arguments{"--format", "text"}).out, expected);
}

TEST(Formats, LinesAreEscaped) {
  const Arguments arguments = kModd + kEven + Arguments{"--max-chars", "600", "--samples", "3"};
  const std::vector<std::string> texts = Texts(RunWell(arguments + kJson));
  std::string expected;
  for (const std::string& text : texts) {
    for (const char* needed : {"\n", "\t", "\\", "\"", "\u0001", "\u2028", "é", "😀", "€"}) {
      ASSERT_NE(text.find(needed), std::string::npos) << "the test needs a text with " << needed;
    }
    std::string line = text;
    for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
             {"\\", "\\\\"}, {"\n", "\\n"}, {"\t", "\\t"}, {"\u0001", "\\u0001"}, {"\u2028", "\\u2028"}}) {
      for (size_t at = 0; (at = line.find(from, at)) != std::string::npos; at += to.size()) {
        line.replace(at, from.size(), to);
      }
    }
    expected += line + "\n";
  }
  EXPECT_EQ(RunWell(arguments + Arguments{"--format", "lines"}).out, expected);
}

TEST(Formats, JsonLinesHaveTheirKeysInOrder) {
  const RunResult result =
      RunWell(kModd + kEven + kJson + Arguments{"--max-chars", "600", "--prompt", "\u2028\"\\", "--samples", "2"});
  const std::vector<Json> records = Records(result);
  ASSERT_EQ(records.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Json& record = records[i];
    const std::string text = record.at("text");
    EXPECT_EQ(record, Json({{"index", 0},
                            {"sample", i},
                            {"id", nullptr},
                            {"prompt", "\u2028\"\\"},
                            {"text", text},
                            {"finish", "length"},
                            {"chars", 600},
                            {"logprob", record.at("logprob")}}));
    EXPECT_EQ(NumChars(text), 600u);
    EXPECT_LT(record.at("logprob").get<double>(), 0.0);
  }
  EXPECT_EQ(result.out.find("\u2028"), std::string::npos) << "some readers would end a line there";
}

TEST(Formats, TerminalShowsTheSameTextAsItIsWritten) {
  for (const Arguments& more : std::vector<Arguments>{{},
                                                      {"--prompt", "ab", "--stop", "a\n"},
                                                      {"--stop", "bca", "--stop", "cabX"},
                                                      {"--max-chars", "0"},
                                                      {"--samples", "3"}}) {
    const Arguments arguments = kM8 + kEven + Arguments{"--max-chars", "60"} + more;
    EXPECT_EQ(RunWell(arguments, {.terminal = true}).out, RunWell(arguments).out) << Show(more);
  }
  const Arguments failing = kM8 + Arguments{"--prompt", "abx"};
  EXPECT_EQ(RunPartly(failing, {.terminal = true}).out, "");
  EXPECT_EQ(RunPartly(failing).out, "");
}

TEST(Formats, ExampleOfTheManual) {
  const Arguments arguments = {"generate", "--prompts", "-", "--samples", "3",    "--max-chars",
                               "80",       "--seed",    "1", "--format",  "jsonl"};
  const RunOptions input = {.input = "ROMEO:\nJULIET:\n"};
  const RunResult result = RunWell(arguments, input);
  const std::vector<Json> records = Records(result);
  ASSERT_EQ(records.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(records[i].at("index"), i / 3);
    EXPECT_EQ(records[i].at("sample"), i % 3);
    EXPECT_EQ(records[i].at("prompt"), i < 3 ? "ROMEO:" : "JULIET:");
    EXPECT_EQ(records[i].at("chars"), 80);
  }
  EXPECT_EQ(RunWell(arguments, input).out, result.out);
}

TEST(Formats, ClosingLineCounts) {
  const auto closing = [](const Arguments& arguments) { return Lines(RunOctavo(kM8 + arguments).err).back(); };
  const std::string rate = " in \\d+\\.\\d{3} s, \\d+ characters a second, ";
  const auto matches = [](const std::string& line, const std::string& pattern) {
    return std::regex_match(line, std::regex("octavo: " + pattern + ", target \\S+"));
  };
  const std::string many = closing({"--prompt", "ab", "--samples", "6", "--max-chars", "9", "--threads", "2"});
  EXPECT_TRUE(matches(many, "6 completions, 54 characters" + rate + "2 threads")) << many;
  const std::string one = closing({"--max-chars", "1", "--threads", "1"});
  EXPECT_TRUE(matches(one, "1 completion, 1 character" + rate + "1 thread")) << one;
  const std::string failed = closing({"--prompt", "x", "--prompt", "", "--max-chars", "4", "--threads", "1"});
  EXPECT_TRUE(matches(failed, "2 completions \\(1 failed\\), 4 characters" + rate + "1 thread")) << failed;
}

TEST(Escapes, AreReadInPromptAndStopOnlyWhenAskedFor) {
  const Arguments arguments =
      kModd + kJson + Arguments{"--max-chars", "0", "--prompt", "a\\n\\t\\\\\\u00e9\\uD83D\\uDE00"};
  EXPECT_EQ(Records(RunWell(arguments + Arguments{"--escape"})).at(0).at("prompt"), "a\n\t\\é😀");
  EXPECT_EQ(Records(RunWell(arguments + Arguments{"--unknown", "skip"})).at(0).at("prompt"),
            "a\\n\\t\\\\\\u00e9\\uD83D\\uDE00");
  const std::string whole = Text(kM8 + kEven);
  EXPECT_EQ(Text(kM8 + kEven + Arguments{"--escape", "--stop", "\\n"}), whole.substr(0, whole.find('\n')));
  EXPECT_EQ(Text(kM8 + kEven + Arguments{"--stop", "\\n"}), whole);
}

TEST(Unknown, FailsByNameAndPlaceAndOthersGoOn) {
  const Arguments arguments = kModd + Arguments{"--max-chars", "9",         "--prompt", "price: 5€", "--prompt",
                                                "a\u00a0b",    "--samples", "2",        "--prompt",  "ab"};
  const RunResult result = RunPartly(arguments + kJson);
  const std::vector<Json> records = Records(result);
  ASSERT_EQ(records.size(), 4u) << "one record for a prompt that fails";
  EXPECT_EQ(records[0], Json({{"index", 0},
                              {"sample", 0},
                              {"id", nullptr},
                              {"prompt", "price: 5€"},
                              {"text", ""},
                              {"finish", "error"},
                              {"chars", 0},
                              {"logprob", 0.0},
                              {"error", "character 6 is U+003A ':', which the model's vocabulary lacks"},
                              {"line", nullptr}}));
  EXPECT_EQ(records[1].at("error"), "character 2 is U+00A0 '\u00A0', which the model's vocabulary lacks");
  EXPECT_EQ(records[2].at("finish"), "length");
  EXPECT_NE(result.err.find("octavo: prompt 1: character 6 is U+003A ':'"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("octavo: prompt 2: "), std::string::npos) << result.err;
  const std::vector<std::string> lines = Lines(RunPartly(arguments + Arguments{"--format", "lines"}).out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0] + lines[1], "");
  EXPECT_EQ(lines[2], EscapeControls(records[2].at("text").get<std::string>()));
}

TEST(Unknown, IsSkippedOrReplacedOnDemand) {
  for (const auto& [policy, same_as] : std::vector<std::pair<std::string, std::string>>{
           {"skip", "abc"}, {"replace=b", "abbbbbc"}, {"replace=\n", "ab\n\n\n\nc"}}) {
    const std::vector<Json> records =
        Records(RunWell(kM8 + kJson + Arguments{"--unknown", policy, "--prompt", "abx€!xc", "--max-chars", "40"}));
    EXPECT_EQ(records.at(0).at("text"), Text(kM8 + Arguments{"--prompt", same_as, "--max-chars", "40"})) << policy;
    EXPECT_EQ(records.at(0).at("prompt"), "abx€!xc") << "as it was given";
  }
  RunPartly(kM8 + Arguments{"--unknown", "replace=a", "--prompt", "b\xFF"});
}

TEST(EmptyPrompt, ReadsTheStartCharacterAndPrintsNone) {
  for (const auto& [model, start] : std::vector<std::pair<std::string, std::string>>{{"m8.safetensors", "\n"},
                                                                                     {"modd", "\n"},
                                                                                     {"w33.safetensors", "."},
                                                                                     {"eos.safetensors", "C"},
                                                                                     {"t1.safetensors", "a"}}) {
    const Arguments arguments = {"generate", "--model", Golden(model), "--seed", "3", "--max-chars", "25"};
    const std::string expected = Text(arguments + Arguments{"--prompt", start});
    EXPECT_EQ(Text(arguments), expected) << model;
    EXPECT_EQ(Text(arguments + Arguments{"--prompt", ""}), expected) << model;
    EXPECT_EQ(RunWell(arguments).out, expected + "\n") << model;
    EXPECT_EQ(Text(arguments + Arguments{"--prompt", "ж", "--unknown", "skip"}), expected) << model;
  }
}

TEST(Lengths, DefaultIsFiveHundredAndZeroGivesEmptyCompletions) {
  EXPECT_EQ(NumChars(Text(kM8)), 500u);
  const std::vector<Json> records = Records(RunWell(kM8 + kJson + Arguments{"--max-chars", "0", "--samples", "2"}));
  ASSERT_EQ(records.size(), 2u);
  for (const Json& record : records) {
    EXPECT_EQ(record.at("text"), "");
    EXPECT_EQ(record.at("finish"), "length");
    EXPECT_EQ(record.at("chars"), 0);
    EXPECT_EQ(record.at("logprob"), 0.0);
  }
}

TEST(Lengths, TwoBillionCharactersTakeNoRoomBeforeTheyAreWritten) {
  const RunResult result = RunWell(kM8 + kEven + kJson + Arguments{"--max-chars", "2000000000", "--stop", "cc"});
  EXPECT_EQ(Records(result).at(0).at("finish"), "stop");
  EXPECT_LT(result.peak_memory_bytes, 200u << 20);
}

TEST(Overflow, StopEndsAtTheContext) {
  const Arguments arguments = kM8 + kJson + Arguments{"--prompt",  "abcab",      "--prompt", "abcabcab",    "--prompt",
                                                      "abcabcabc", "--overflow", "stop",     "--max-chars", "50"};
  const std::vector<Json> records = Records(RunWell(arguments));
  EXPECT_EQ(Column(records, "chars"), (std::vector<Json>{4, 1, 0})) << "T - p + 1, T = 8";
  EXPECT_EQ(Column(records, "finish"), (std::vector<Json>{"context", "context", "context"}));
  EXPECT_EQ(Records(RunWell(arguments + Arguments{"--max-chars", "1"})).at(1).at("finish"), "length");
}

TEST(Overflow, RulesAgreeUntilTheContextIsFull) {
  const auto text = [](const Arguments& more) {
    return Text(kM8 + kEven + Arguments{"--prompt", "abcab", "--max-chars", "40"} + more);
  };
  const std::string slide = text({});
  EXPECT_EQ(text({"--overflow", "slide"}), slide);
  EXPECT_EQ(text({"--overflow", "stop"}), slide.substr(0, 4));
  EXPECT_EQ(text({"--overflow", "restart"}).substr(0, 4), slide.substr(0, 4));
  EXPECT_EQ(text({"--overflow", "restart"}).size(), 40u);
  const Arguments cold = kM8 + Arguments{"--temperature", ".8", "--prompt", "abcab"};
  EXPECT_NE(Text(cold + Arguments{"--overflow", "restart"}), Text(cold));
}

TEST(Overflow, OnlyTheLastCharactersOfALongPromptAreRead) {
  const std::string tail = "a cab ba";
  const std::string expected = Text(kM8 + Arguments{"--prompt", tail});
  EXPECT_EQ(Text(kM8 + Arguments{"--prompt", "bbbbc" + tail}), expected);
  EXPECT_EQ(Text(kM8 + Arguments{"--prompt", std::string(50000, 'c') + tail}), expected);
}

TEST(EndToken, EndsATextAndIsNotPrinted) {
  const Arguments arguments = {
      "generate", "--model", Golden("eos.safetensors"), "--seed", "1", "--samples", "50", "--max-chars", "30",
      "--format", "jsonl"};
  size_t ended = 0;
  for (const Json& record : Records(RunWell(arguments + kEven))) {
    const std::string text = record.at("text");
    EXPECT_EQ(text.find_first_of("<>epads"), std::string::npos) << text;
    EXPECT_EQ(record.at("chars"), text.size());
    EXPECT_LE(text.size(), record.at("finish") == "stop" ? 29u : 30u) << text;
    ended += record.at("finish") == "stop";
  }
  EXPECT_GT(ended, 20u);
}

// The contract, naively: the first end of any stop, and of those that end there the longest.
std::string Cut(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t cut = 0;
    for (const std::string& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop)) cut = std::max(cut, stop.size());
    }
    if (cut > 0) return text.substr(0, end - cut);
  }
  return text;
}

TEST(Stops, CutBeforeTheFirstThatIsComplete) {
  const Arguments arguments = kM8 + kEven + Arguments{"--prompt", "abcabc", "--max-chars", "200"};
  const std::string whole = Text(arguments);
  std::vector<std::vector<std::string>> cases = {
      {whole.substr(0, 1)},
      {whole.substr(0, 7), whole.substr(1, 6)},
      {whole.substr(1, 6), whole.substr(0, 7)},
      {whole.substr(40, 9) + "X", whole.substr(42, 5)},
      {whole.substr(190) + "a"},
      {whole.substr(193) + "x", "nowhere"},
      {"abcabc" + whole.substr(0, 2)},
      {"\n"},
      {"bca", "abcabX", "ab", "abc"},
  };
  std::mt19937 random(1);
  for (size_t i = 0; i < 12; ++i) {
    cases.emplace_back();
    for (size_t n = 0; n < 3; ++n) cases.back().push_back(whole.substr(random() % 150, 2 + random() % 6));
  }
  for (const std::vector<std::string>& stops : cases) {
    Arguments flags = arguments;
    for (const std::string& stop : stops) flags = flags + Arguments{"--stop", stop};
    SCOPED_TRACE(Show(flags));
    const Json record = Records(RunWell(flags + kJson)).at(0);
    const std::string expected = Cut(whole, stops);
    EXPECT_EQ(record.at("text"), expected);
    EXPECT_EQ(record.at("chars"), expected.size());
    EXPECT_EQ(record.at("finish"), expected == whole ? "length" : "stop");
    EXPECT_EQ(RunWell(flags, {.terminal = true}).out, "abcabc" + expected + "\n");
  }
}

TEST(Stops, MayHoldCharactersOfSeveralBytes) {
  const std::string whole = Text(kModd + kEven);
  EXPECT_EQ(Text(kModd + kEven + Arguments{"--stop", "😀"}), whole.substr(0, whole.find("😀")));
  EXPECT_EQ(Text(kModd + kEven + Arguments{"--stop", "\u2028", "--stop", "é"}),
            whole.substr(0, std::min(whole.find("\u2028"), whole.find("é"))));
}

}  // namespace
}  // namespace octavo::test
