// octavo generate: where prompts come from: flags, files of lines, JSON lines, pipes; what bad ones do; the order of records.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/testing/command_checks.h"

namespace octavo::test {
namespace {

const Arguments kM8 = {"generate", "--model", Golden("m8.safetensors"), "--seed", "1", "--max-chars", "5",
                       "--format", "jsonl"};
const Arguments kModd = {"generate", "--model", Golden("modd"), "--seed", "1", "--max-chars", "5", "--format", "jsonl"};
const Arguments kInput = {"--prompts", "-"};
const Arguments kJsonInput = {"--prompts", "-", "--input-format", "jsonl"};

std::vector<Json> Prompts(const RunResult& result) { return Column(Records(result), "prompt"); }

TEST(PromptLines, AreReadWithTheirEscapesWhereAsked) {
  const std::string input = "a\\nb\n\\u0061\\\\\nb\\x\na\n";
  const RunResult plain = RunOctavo(kM8 + kInput, {.input = input});
  EXPECT_EQ(Prompts(plain), (std::vector<Json>{"a\\nb", "\\u0061\\\\", "b\\x", "a"}));
  const RunResult escaped = RunOctavo(kM8 + kInput + Arguments{"--escape", "--unknown", "skip"}, {.input = input});
  EXPECT_EQ(escaped.exit_code, 1);
  EXPECT_EQ(Prompts(escaped), (std::vector<Json>{"a\nb", "a\\", "b\\x", "a"}));
  const std::vector<Json> records = Records(escaped);
  EXPECT_EQ(records.at(2).at("finish"), "error");
  EXPECT_EQ(records.at(2).at("line"), 3);
  EXPECT_EQ(records.at(3).at("chars"), 5);
  // JSON has escapes of its own.
  const RunResult json = RunWell(kM8 + kJsonInput + Arguments{"--escape"}, {.input = R"({"prompt": "a\nb"})"});
  EXPECT_EQ(Prompts(json), (std::vector<Json>{"a\nb"}));
  const RunResult backslash = RunOctavo(kM8 + kJsonInput + Arguments{"--escape"}, {.input = R"({"prompt": "a\\nb"})"});
  EXPECT_EQ(Prompts(backslash), (std::vector<Json>{"a\\nb"}));
}

TEST(PromptLines, AreReadWithoutTheirLineEnds) {
  const std::vector<std::pair<std::string, std::vector<Json>>> cases = {
      {"", {}},
      {"\xEF\xBB\xBF", {}},
      {"a\nb\n", {"a", "b"}},
      {"a\nb", {"a", "b"}},
      {"a\r\nb\r\n", {"a", "b"}},
      {"a\r\n\r\nb c\n", {"a", "", "b c"}},
      {"\n", {""}},
      {"\n\n", {"", ""}},
      {"\xEF\xBB\xBF"
       "a\nb",
       {"a", "b"}},
      {"\xEF\xBB\xBF\n", {""}},
      {" a \n\n", {" a ", ""}},
      {std::string(100000, 'a') + "\nb\n", {std::string(100000, 'a'), "b"}},
  };
  for (const auto& [input, expected] : cases) {
    const RunResult result = RunWell(kM8 + kInput, {.input = input});
    EXPECT_EQ(Prompts(result), expected) << input.substr(0, 20);
    for (const Json& record : Records(result)) EXPECT_EQ(record.at("chars"), 5);
  }
  EXPECT_NE(RunWell(kM8 + kInput).err.find("0 completions, 0 characters"), std::string::npos);
}

TEST(PromptLines, OtherBytesArePartOfThePrompt) {
  using std::string_literals::operator""s;
  const std::string input = "a\rb\nb\0\n\xEF\xBB\xBF"s + "a\n\xFF\xC3\nc\r";
  const RunResult result = RunPartly(kM8 + kInput, {.input = input});
  const std::vector<Json> records = Records(result);
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records[0].at("error"), "character 2 is U+000D '\\u000D', which the model's vocabulary lacks");
  EXPECT_EQ(records[1].at("error"), "character 2 is U+0000 '\\u0000', which the model's vocabulary lacks");
  EXPECT_EQ(records[1].at("prompt"), "b\0"s);
  EXPECT_EQ(records[2].at("error"), "character 1 is U+FEFF '\uFEFF', which the model's vocabulary lacks");
  EXPECT_EQ(records[3].at("error"), "byte 0 (0xFF) is not UTF-8");
  EXPECT_EQ(records[3].at("prompt"), "\uFFFD");
  EXPECT_EQ(records[4].at("prompt"), "c\r") << "half a line end";
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(records[i].at("line"), i + 1);
}

TEST(PromptLines, CharactersThatTinyLacksFailByPlaceAndOthersGoOn) {
  const Arguments tiny = {"generate", "--seed", "1", "--max-chars", "5", "--format", "jsonl"};
  const RunResult result = RunPartly(tiny + kInput, {.input = "price: 5€\nROMEO:\nnaïve\nprice: €\na\tb\nJULIET:\n"});
  const std::vector<Json> lacks = {"character 8 is U+0035 '5', which the model's vocabulary lacks",
                                   nullptr,
                                   "character 3 is U+00EF 'ï', which the model's vocabulary lacks",
                                   "character 8 is U+20AC '€', which the model's vocabulary lacks",
                                   "character 2 is U+0009 '\\t', which the model's vocabulary lacks",
                                   nullptr};
  for (size_t i = 0; i < lacks.size(); ++i) EXPECT_EQ(Records(result).at(i).value("error", Json()), lacks[i]) << i;
  EXPECT_EQ(Prompts(result), (std::vector<Json>{"price: 5€", "ROMEO:", "naïve", "price: €", "a\tb", "JULIET:"}));
  EXPECT_EQ(Column(Records(result), "chars"), (std::vector<Json>{0, 5, 0, 0, 0, 5}));
  const std::vector<std::string> messages = Lines(result.err);
  for (const size_t i : {0, 2, 3, 4}) {
    const std::string message =
        "octavo: standard input line " + std::to_string(i + 1) + ": " + lacks[i].get<std::string>();
    EXPECT_EQ(std::count(messages.begin(), messages.end(), message), 1) << result.err;
  }
}

TEST(PromptLines, EndlessOnesAreRefused) {
  const RunResult result = RunOctavo(kM8 + Arguments{"--prompts", "/dev/zero"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err,
            "octavo: '/dev/zero' has a line of more than 67108864 bytes; expected a text or a JSON object a line\n");
  EXPECT_LT(result.peak_memory_bytes, uint64_t{400} << 20);
}

TEST(PromptFiles, FollowTheFlags) {
  const TemporaryFolder folder;
  const std::string lines = folder.Write("lines.txt", "b\nc\n");
  const std::string json = folder.Write("in.jsonl", "{\"prompt\":\"b\",\"id\":7}\n");
  const std::string upper = folder.Write("in.JSONL", "b\n");
  EXPECT_EQ(Prompts(RunWell(kM8 + Arguments{"--prompts", lines, "--prompt", "a", "--prompt", ""})),
            (std::vector<Json>{"a", "", "b", "c"}));
  const std::vector<Json> records = Records(RunWell(kM8 + Arguments{"--prompts", json, "--prompt", "a"}));
  EXPECT_EQ(Column(records, "prompt"), (std::vector<Json>{"a", "b"}));
  EXPECT_EQ(Column(records, "id"), (std::vector<Json>{nullptr, 7}));
  EXPECT_EQ(Column(records, "index"), (std::vector<Json>{0, 1}));
  EXPECT_EQ(Prompts(RunWell(kM8 + Arguments{"--prompts", upper})), (std::vector<Json>{"b"}));
  EXPECT_EQ(Prompts(RunPartly(kM8 + Arguments{"--prompts", json, "--input-format", "lines"})),
            (std::vector<Json>{"{\"prompt\":\"b\",\"id\":7}"}));
  EXPECT_EQ(Prompts(RunWell(kM8 + Arguments{"--prompts", folder.Write("empty", "")})), std::vector<Json>{});
  EXPECT_EQ(Prompts(RunWell(kM8 + Arguments{"--prompts", folder.Write("empty.jsonl", "")})), std::vector<Json>{});
}

TEST(JsonPrompts, OverrideEachFlag) {
  const std::string input =
      R"({"prompt":"ab","id":"x y","samples":2,"max_chars":12,"seed":4,"temperature":1e30,"top_k":3,"top_p":0.9,"stop":["zz"]})"
      "\n"
      R"({"prompt":"ab","id":1.5,"temperature":0,"stop":"zz"})"
      "\n"
      R"({"prompt":"\u0061\nb","id":true})"
      "\n";
  const std::vector<Json> records = Records(RunWell(kM8 + kJsonInput, {.input = input}));
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(Column(records, "id"), (std::vector<Json>{"x y", "x y", 1.5, true}));
  EXPECT_EQ(Column(records, "sample"), (std::vector<Json>{0, 1, 0, 0}));
  EXPECT_EQ(Column(records, "index"), (std::vector<Json>{0, 0, 1, 2}));
  EXPECT_EQ(Column(records, "chars"), (std::vector<Json>{12, 12, 5, 5}));
  EXPECT_EQ(records[3].at("prompt"), "a\nb");
  const std::vector<std::string> same =
      Texts(RunWell(kM8 + Arguments{"--prompt", "ab", "--samples", "2", "--max-chars", "12", "--seed", "4",
                                    "--temperature", "1e30", "--top-k", "3", "--top-p", "0.9"}));
  EXPECT_EQ(records[0].at("text"), same.at(0));
  EXPECT_EQ(records[1].at("text"), same.at(1));
  EXPECT_EQ(records[2].at("text"), Texts(RunWell(kM8 + Arguments{"--prompt", "ab", "--temperature", "0"})).at(0));
}

TEST(JsonPrompts, StopsReplaceThoseOfTheFlags) {
  const Arguments arguments = kM8 + kJsonInput + Arguments{"--max-chars", "60", "--temperature", "1e30"};
  const std::string whole = Texts(RunWell(arguments, {.input = "{\"prompt\":\"\",\"seed\":2}\n"})).at(0);
  const auto text = [&](const std::string& stop) {
    const std::string input = "{\"prompt\":\"\",\"seed\":2" + stop + "}\n";
    return Texts(RunWell(arguments + Arguments{"--stop", "a"}, {.input = input})).at(0);
  };
  EXPECT_EQ(text(""), whole.substr(0, whole.find('a')));
  EXPECT_EQ(text(",\"stop\":[\"b\"]"), whole.substr(0, whole.find('b')));
  EXPECT_EQ(text(",\"stop\":\"b\""), whole.substr(0, whole.find('b')));
  EXPECT_EQ(text(",\"stop\":[\"c\",\"\\n\"]"), whole.substr(0, whole.find_first_of("c\n")));
  EXPECT_EQ(text(",\"stop\":[]"), whole);
}

TEST(JsonPrompts, BadLinesAreErrorRecordsAndTheRunGoesOn) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"{\"prompt\":\"\xFF\"}", "not valid JSON in UTF-8"},
      {R"({"prompt":"\ud83d"})", "not valid JSON in UTF-8"},
      {R"({"prompt":"\ude00\ud83d"})", "not valid JSON in UTF-8"},
      {R"({"prompt":"a")", "not valid JSON in UTF-8"},
      {R"({"prompt":"a"} {})", "not valid JSON in UTF-8"},
      {R"({"prompt":"a",})", "not valid JSON in UTF-8"},
      {"a", "not valid JSON in UTF-8"},
      {R"("a")", "the line is a JSON string; expected an object"},
      {R"(["a"])", "the line is a JSON array; expected an object"},
      {"7", "the line is a JSON number; expected an object"},
      {std::string(100000, '['), "nested more than"},
      {"{}", "the line has no 'prompt'"},
      {R"({"text":"a"})", "the line has no 'prompt'"},
      {R"({"prompt":5})", "'prompt' is '5'; expected a string"},
      {R"({"prompt":null})", "'prompt' is 'null'; expected a string"},
      {R"({"prompt":["a"]})", "'prompt' is array; expected a string"},
      {R"({"prompt":"a","prompt":"b"})", "twice"},
      {R"({"prompt":"a","id":{}})", "'id' is object; expected a string, number or boolean"},
      {R"({"prompt":"a","id":[1]})", "'id' is array; expected a string, number or boolean"},
      {R"({"prompt":"a","id":18446744073709551616})", "'id' is a number near 1.8446744073709552e+19, too large"},
      {R"({"prompt":"a","id":-9223372036854775809})", "too large to be handed back exactly; expected it as a string"},
      {R"({"prompt":"a","id":9007199254740993.0})", "too large to be handed back exactly"},
      {R"({"prompt":"a","samples":0})", "'samples' is '0'; expected a whole number of at least 1"},
      {R"({"prompt":"a","samples":"3"})", "'samples' is"},
      {R"({"prompt":"a","max_chars":-1})", "'max_chars' is '-1'"},
      {R"({"prompt":"a","max_chars":1.5})", "'max_chars' is '1.5'"},
      {R"({"prompt":"a","seed":18446744073709551616})", "'seed' is"},
      {R"({"prompt":"a","seed":null})", "'seed' is 'null'"},
      {R"({"prompt":"a","temperature":-1})", "temperature is -1"},
      {R"({"prompt":"a","temperature":"hot"})", "'temperature' is"},
      {R"({"prompt":"a","temperature":1e999})", "a number that does not fit"},
      {R"({"prompt":"a","temperature":NaN})", "not valid JSON"},
      {R"({"prompt":"a","top_k":-1})", "'top_k' is '-1'"},
      {R"({"prompt":"a","top_p":0})", "top_p is 0"},
      {R"({"prompt":"a","top_p":1.5})", "top_p is 1.5"},
      {R"({"prompt":"a","stop":""})", "stop string is empty"},
      {R"({"prompt":"a","stop":["b",""]})", "stop string is empty"},
      {R"({"prompt":"a","stop":[1]})", "'stop' is '1'"},
      {R"({"prompt":"a","stop":{}})", "'stop' is object"},
      {R"({"prompt":"x"})", "character 1 is U+0078 'x'"},
  };
  std::string input;
  for (const auto& [line, error] : bad) input += line + "\n" + R"({"prompt":"b","id":"good"})" + "\r\n";
  const RunResult result = RunPartly(kM8 + kJsonInput + Arguments{"--samples", "3"}, {.input = input});
  const std::vector<Json> records = Records(result);
  ASSERT_EQ(records.size(), 4 * bad.size());
  const std::vector<std::string> messages = Lines(result.err);
  for (size_t i = 0; i < bad.size(); ++i) {
    const Json& record = records[4 * i];
    SCOPED_TRACE(bad[i].first.substr(0, 60));
    EXPECT_EQ(record.at("index"), 2 * i);
    EXPECT_EQ(record.at("line"), 2 * i + 1);
    EXPECT_EQ(record.at("finish"), "error");
    EXPECT_EQ(record.at("text"), "");
    const std::string error = record.at("error");
    EXPECT_NE(error.find(bad[i].second), std::string::npos) << error;
    EXPECT_EQ(messages.at(i), "octavo: standard input line " + std::to_string(2 * i + 1) + ": " + error);
    for (size_t n = 1; n < 4; ++n) EXPECT_EQ(records[4 * i + n].at("id"), "good");
  }
}

TEST(JsonPrompts, ErrorRecordsSayWhatCouldBeRead) {
  const std::string input = "{\"id\":\"a1\",\"prompt\":\"ab\",\"top_p\":7}\n{\"id\":\"a2\",\"prompt\":5}\n{\"id\":\n";
  const std::vector<Json> records = Records(RunPartly(kM8 + kJsonInput, {.input = input}));
  EXPECT_EQ(Column(records, "id"), (std::vector<Json>{"a1", "a2", nullptr}));
  EXPECT_EQ(Column(records, "prompt"), (std::vector<Json>{"ab", nullptr, nullptr}));
}

TEST(JsonPrompts, IdsComeBackAsTheyWere) {
  const std::vector<std::string> ids = {"18446744073709551615",
                                        "-9223372036854775808",
                                        "9007199254740993",
                                        "0",
                                        "-1",
                                        "1.5",
                                        "1.0",
                                        "0.1",
                                        "-2.5e-07",
                                        "true",
                                        "false",
                                        "null",
                                        "\"\"",
                                        "\"18446744073709551616\""};
  std::string input;
  for (const std::string& id : ids) input += "{\"id\":" + id + ",\"prompt\":\"a\"}\n";
  const std::vector<std::string> lines = Lines(RunWell(kM8 + kJsonInput, {.input = input}).out);
  ASSERT_EQ(lines.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_NE(lines[i].find("\"id\":" + ids[i] + ","), std::string::npos) << ids[i] << '\n' << lines[i];
  }
}

TEST(JsonPrompts, UnknownKeysGetOneWarningEach) {
  std::string input;
  for (size_t i = 0; i < 50; ++i)
    input += R"({"prompt":"a","temprature":0,"top k":1})"
             "\n";
  const RunResult result = RunWell(kM8 + kJsonInput, {.input = input});
  EXPECT_EQ(Records(result).size(), 50u);
  const std::vector<std::string> lines = Lines(result.err);
  ASSERT_EQ(lines.size(), 3u) << "two warnings and the closing line" << result.err;
  EXPECT_NE(lines[0].find("line 1: unknown key 'temprature' is ignored"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("'top k'"), std::string::npos) << lines[1];
  const Arguments plain = kM8 + Arguments{"--prompt", "a"};
  EXPECT_EQ(Texts(result).at(0), Texts(RunWell(plain)).at(0));
}

TEST(JsonPrompts, BlankLinesAndByteOrderMarkAreNothing) {
  const std::string input = "\xEF\xBB\xBF{\"prompt\":\"a\"}\r\n\r\n \t\n\n{\"prompt\":\"b\"}";
  EXPECT_EQ(Prompts(RunWell(kM8 + kJsonInput, {.input = input})), (std::vector<Json>{"a", "b"}));
  EXPECT_EQ(Records(RunPartly(kM8 + kJsonInput, {.input = "\n\n{\n"})).at(0).at("line"), 3);
}

TEST(JsonPrompts, HardCharactersComeBackAsTheyWent) {
  const std::string hard = "\"\\\t\u0001\u2028é😀€\nA";
  Json line;
  line["prompt"] = line["id"] = hard;
  for (const bool ascii : {false, true}) {
    const RunResult result = RunWell(kModd + kJsonInput, {.input = line.dump(-1, ' ', ascii) + "\n"});
    EXPECT_EQ(Records(result).at(0).at("prompt"), hard);
    EXPECT_EQ(Records(result).at(0).at("id"), hard);
    EXPECT_EQ(result.out.find("\u2028"), std::string::npos);
  }
  const RunResult next_line = RunPartly(kModd + kJsonInput, {.input = "{\"prompt\":\"\u0085\u2029\"}\n"});
  EXPECT_EQ(Records(next_line).at(0).at("prompt"), "\u0085\u2029");
  EXPECT_EQ(next_line.out.find("\u0085"), std::string::npos);
  EXPECT_EQ(next_line.out.find("\u2029"), std::string::npos);
}

TEST(Order, IsThatOfTheInput) {
  const std::string alphabet = "abc bca cab ";
  std::string input;
  std::vector<Json> prompts;
  for (size_t i = 0; i < 200; ++i) {
    std::string prompt;
    for (size_t n = 0; n < 1 + (i / 2 * 37) % 60; ++n) prompt += alphabet[(i / 2 + n * n) % alphabet.size()];
    input += i == 77 ? "{\"prompt\":\n" : Json({{"prompt", prompt}, {"id", i}}).dump() + "\n";
    prompts.push_back(i == 77 ? Json(nullptr) : Json(prompt));
  }
  const Arguments arguments = kM8 + kJsonInput + Arguments{"--threads", "4"};
  const RunResult result = RunPartly(arguments, {.input = input});
  const std::vector<Json> records = Records(result);
  EXPECT_EQ(Column(records, "prompt"), prompts);
  for (size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(records.at(i).at("index"), i);
    EXPECT_EQ(records.at(i).at("id"), i == 77 ? Json(nullptr) : Json(i));
    EXPECT_EQ(records.at(i).contains("error"), i == 77);
  }
  EXPECT_EQ(RunPartly(arguments + Arguments{"--threads", "1"}, {.input = input}).out, result.out);
}

TEST(Pipes, AreAnsweredBeforeTheyEnd) {
  for (const char* threads : {"1", "2"}) {
    const RunResult result =
        RunWell(kM8 + kInput + Arguments{"--threads", threads},
                {.input = "a\n", .hold_input_until_bytes = 50, .timeout = std::chrono::seconds(20)});
    EXPECT_EQ(Prompts(result), (std::vector<Json>{"a"}));
  }
}

}  // namespace
}  // namespace octavo::test
