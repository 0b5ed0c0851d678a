// The command line itself: help, version, wrong usage (one line, exit 2), failures (one line, exit 1), outputs that break.
#include <gtest/gtest.h>

#include <thread>

#include "engine/threads.h"
#include "engine/version.h"
#include "tests/testing/command_checks.h"

namespace octavo::test {
namespace {

const std::string kM8 = Golden("m8.safetensors");

TEST(Help, NamesEveryFlagWithItsDefaultAndAnExample) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> expected = {
      {"generate",
       {"--prompt TEXT",
        "--prompts FILE",
        "--input-format lines|jsonl",
        "--samples N",
        "(default 1)",
        "--max-chars N",
        "(default 500)",
        "--stop TEXT",
        "--escape",
        "--temperature X",
        "--top-k K",
        "(default 0)",
        "--top-p P",
        "--seed N",
        "--first N",
        "--overflow slide|restart|stop",
        "(default slide)",
        "--unknown WHAT",
        "(default error)",
        "--format text|lines|jsonl",
        "--output FILE",
        "--resume",
        "--force",
        "(default text)",
        "--model NAME|FILE|DIR",
        "(default tiny)",
        "--threads N",
        "--target NAME",
        "--quiet",
        "--help"}},
      {"score",
       {"FILE", "--document", "--input-format lines|jsonl", "--stride N", "--start C", "--end C", "--escape",
        "--per-char", "--format jsonl", "--model NAME|FILE|DIR", "--threads N", "--target NAME", "--quiet", "--help"}},
      {"attend",
       {"TEXT", "--window N", "--layer N", "--head N", "--format table|json", "(default table)", "--html FILE",
        "--force", "--model NAME|FILE|DIR", "--threads N", "--target NAME", "--quiet", "--help"}},
      {"check",
       {"--target NAME", "--model NAME|FILE|DIR", "(default tiny)", "--cases N", "(default 100)", "--seed N",
        "(default 1)", "--format table|json", "(default table)", "--quiet", "--help"}},
      {"info",
       {"--format table|json", "(default table)", "--model NAME|FILE|DIR", "--threads N", "--target NAME", "--help"}},
  };
  const std::string overview = RunWell({"--help"}).out;
  EXPECT_EQ(RunWell({"-h"}).out, overview);
  for (const auto& [command, parts] : expected) {
    EXPECT_NE(overview.find("\n  " + command + " "), std::string::npos) << overview;
    const RunResult help = RunWell({command, "--help"});
    EXPECT_EQ(RunWell({command, "--seed=1", "-h"}).out.substr(0, 5), help.out.substr(0, 5));
    EXPECT_EQ(help.err, "");
    for (const std::string& part : parts) EXPECT_NE(help.out.find(part), std::string::npos) << part << help.out;
    EXPECT_NE(help.out.find("Example"), std::string::npos);
    EXPECT_NE(help.out.find("\n  octavo " + command + " "), std::string::npos) << help.out;
    EXPECT_EQ(help.out.find("\n\n\n"), std::string::npos) << help.out;
    EXPECT_EQ(help.out.find('\x1b'), std::string::npos) << "colours";
  }
}

TEST(Version, NamesReleaseAndNumerics) {
  const RunResult version = RunWell({"--version"});
  EXPECT_EQ(version.out, "octavo " + std::string(Version()) + " (numerics " + std::to_string(kNumericsVersion) + ")\n");
  EXPECT_EQ(version.err, "");
}

struct WrongUse {
  Arguments arguments;
  std::string part;  // of the message
};

void ExpectRefused(const std::vector<WrongUse>& cases) {
  for (const WrongUse& wrong : cases) {
    SCOPED_TRACE(Show(wrong.arguments));
    ExpectOneMessage(RunOctavo(wrong.arguments), 2, wrong.part);
  }
}

TEST(WrongUsage, SuggestsWhatWasMeant) {
  ExpectRefused({
      {{"generate", "--promt", "x"}, "unknown flag '--promt'; did you mean --prompt? (see octavo generate --help)"},
      {{"generate", "--max-cahrs=5"}, "unknown flag '--max-cahrs=5'; did you mean --max-chars? ("},
      {{"score", "--strid", "1"}, "; did you mean --stride? ("},
      {{"genrate"},
       "unknown subcommand 'genrate'; expected generate, score, attend, check or info; did you mean generate?"},
      {{"--versoin"}, "unknown flag '--versoin'; did you mean --version? ("},
  });
  for (const std::string name : {"--zzz", "--q", "-"}) {
    EXPECT_EQ(RunOctavo({"generate", name}).err.find("did you mean"), std::string::npos) << name;
  }
  EXPECT_NE(RunOctavo({"info", "--model", "tinny"}).err.find("(tiny, small); did you mean tiny?"), std::string::npos);
  EXPECT_EQ(RunOctavo({"info", "--model", "mine.safetensors"}).err.find("did you mean"), std::string::npos);
}

TEST(Help, AnswersToWordsToo) {
  EXPECT_EQ(RunWell({"help"}).out, RunWell({"--help"}).out);
  EXPECT_EQ(RunWell({"help", "score"}).out, RunWell({"score", "--help"}).out);
  EXPECT_EQ(RunWell({"version"}).out, RunWell({"--version"}).out);
  ExpectOneMessage(RunOctavo({"help", "bogus"}), 2, "unknown subcommand 'bogus'");
}

TEST(WrongUsage, NamesTheWordThatIsWrong) {
  ExpectRefused({
      {{}, "expected a subcommand: generate, score, attend, check or info (see octavo --help)"},
      {{""}, "unknown subcommand ''"},
      {{"bogus"}, "unknown subcommand 'bogus'; expected generate, score, attend, check or info (see octavo --help)"},
      {{"bogus", "--seed", "1"}, "'bogus'"},
      {{"Generate"}, "'Generate'"},
      {{"--bogus"}, "unknown flag '--bogus' (see octavo --help)"},
      {{"--quiet", "generate"}, "unknown flag '--quiet'"},
      {{"generate", "--bogus", "x", "y"}, "unknown flag '--bogus' (see octavo generate --help)"},
      {{"generate", "--bogus=1"}, "'--bogus=1'"},
      {{"generate", "--sample", "3"}, "'--sample'"},
      {{"generate", "-x"}, "unknown flag '-x'"},
      {{"generate", "ROMEO:"}, "unexpected argument 'ROMEO:'"},
      {{"generate", "--", "ROMEO:"}, "unexpected argument 'ROMEO:'"},
      {{"generate", "score"}, "unexpected argument 'score'"},
      {{"generate", "--seed"}, "--seed: the value is missing (see octavo generate --help)"},
      {{"generate", "--quiet=yes"}, "--quiet takes no value"},
      {{"generate", "--quiet="}, "--quiet takes no value"},
      {{"--help=all"}, "--help takes no value"},
      {{"info", "extra"}, "'extra'"},
      {{"check", "extra"}, "unexpected argument 'extra' (see octavo check --help)"},
      {{"check", "--threads", "1"}, "unknown flag '--threads'"},
      {{"check", "--target"}, "--target: the value is missing"},
      {{"score"}, "FILE is required (see octavo score --help)"},
      {{"score", "--bogus"}, "'--bogus'"},
      {{"score", kM8, "second"}, "unexpected argument 'second'"},
      {{"bo\ngus\x1b[31m"}, "'bo\\ngus\\u001B[31m'"},
      {{"generate", "--no\xFFpe\r"}, "'--no\uFFFDpe\\u000D'"},
  });
}

TEST(WrongUsage, RefusesBadValues) {
  ExpectRefused({
      {{"generate", "--format", "xml"}, "--format: 'xml' is not text, lines or jsonl"},
      {{"generate", "--format", ""}, "--format: '' is not text"},
      {{"generate", "--overflow", "Slide"}, "--overflow: 'Slide' is not slide, restart or stop"},
      {{"generate", "--prompts", "-", "--input-format", "csv"}, "--input-format: 'csv' is not lines or jsonl"},
      {{"generate", "--input-format", "jsonl"}, "--prompts"},
      {{"generate", "--prompts", "a", "--prompts", "b"}, "--prompts: expected one file, found 2"},
      {{"generate", "--unknown", "ignore"}, "--unknown: 'ignore' is not error, skip or replace=C"},
      {{"generate", "--unknown", "ignore", "--model", "nowhere"}, "'ignore'"},
      {{"generate", "--unknown", "replace="}, "one character"},
      {{"generate", "--unknown", "replace=ab"}, "one character"},
      {{"generate", "--unknown", "replace=é", "--model", kM8}, "U+00E9"},
      {{"generate", "--stop", ""}, "stop string is empty"},
      {{"generate", "--stop=", "--quiet"}, "stop string is empty"},
      {{"generate", "--stop", "a", "--stop", ""}, "stop string is empty"},
      {{"generate", "--stop", "a\xFF"}, "not UTF-8"},
      {{"generate", "--escape", "--stop", "\\q"}, "--stop: a backslash"},
      {{"generate", "--escape", "--prompt", "a\\"}, "--prompt: a backslash"},
      {{"generate", "--escape", "--prompt", "\\u12"}, "four hexadecimal digits"},
      {{"generate", "--escape", "--prompt", "\\uD83D"}, "surrogate"},
      {{"score", kM8, "--format", "table"}, "--format: 'table' is not jsonl"},
      {{"score", kM8, "--document", "--input-format", "jsonl"}, "--document"},
      {{"score", kM8, "--stride", "0"}, "--stride: '0' is not a whole number of at least 1"},
      {{"score", kM8, "--model", kM8, "--stride", "9"}, "expected 1 to 8"},
      {{"score", kM8, "--model", kM8, "--start", ""}, "--start '': expected one character"},
      {{"score", kM8, "--model", kM8, "--start", "ab"}, "--start 'ab': expected one character"},
      {{"score", kM8, "--model", kM8, "--end", "é"}, "--end 'é': character 1 is U+00E9"},
      {{"score", kM8, "--escape", "--end", "\\x"}, "--end"},
      {{"info", "--format", "yaml"}, "--format: 'yaml' is not table or json"},
      {{"check", "--format", "jsonl"}, "--format: 'jsonl' is not table or json"},
      {{"check", "--cases", "0"}, "--cases: '0' is not a whole number of at least 1"},
      {{"check", "--seed", "-1"}, "--seed: '-1' is not a whole number of at least 0"},
  });
}

TEST(WrongUsage, RefusesBadNumbers) {
  std::vector<WrongUse> cases;
  for (const char* flag : {"--samples", "--max-chars", "--top-k", "--seed", "--first", "--threads"}) {
    for (const char* value : {"", "-1", "+1", "1.5", "1e3", " 1", "1 ", "0x10", "x", "18446744073709551616"}) {
      cases.push_back({{"generate", flag, value}, flag});
      cases.push_back({{"generate", std::string(flag) + "=" + value, "--quiet"}, flag});
    }
  }
  cases.push_back({{"generate", "--samples", "0"}, "--samples: '0' is not a whole number of at least 1"});
  for (const char* value : {"", "inf", "-inf", "nan", "0,8", "1e999", "0x1p3", " 1", "warm", ".", "1e-400x", "1e-",
                            "-1e+400", "1e99999999999"}) {
    cases.push_back({{"generate", "--temperature", value}, "--temperature"});
    cases.push_back({{"generate", std::string("--top-p=") + value, "--quiet"}, "--top-p"});
  }
  for (const char* value : {"-1", "1e39", "-1e-30"})
    cases.push_back({{"generate", "--temperature", value}, "temperature is "});
  // Too large although the power of ten is negative.
  cases.push_back(
      {{"generate", "--temperature", "1" + std::string(700, '0') + "e-300"}, "not a finite decimal number"});
  for (const char* value : {"0", "-0", "1.0001", "-0.5", "2", "1e-400"})
    cases.push_back({{"generate", "--top-p", value}, "top_p"});
  for (const char* command : {"generate", "info"}) {
    cases.push_back({{command, "--threads", "100000"}, "--threads: threads is 100000; expected 0 (automatic) to "});
    cases.push_back({{command, "--threads", "4294967297"}, "--threads"});
  }
  ExpectRefused(cases);
}

TEST(Values, AreTakenAtTheirEdges) {
  const std::string cores_and_one = std::to_string(DefaultThreads().count + 1);
  for (const Arguments& flags : std::vector<Arguments>{
           {"--temperature", "0"},
           {"--temperature", "-0"},
           {"--temperature", "1e-30"},
           {"--temperature", "1e30"},
           {"--temperature=.5"},
           {"--temperature", "1e-310"},
           {"--top-p", "1"},
           {"--top-p", "1e-300"},
           {"--top-k", "0"},
           {"--top-k", "18446744073709551615"},
           {"--seed", "0"},
           {"--threads", "0"},
           {"--seed", "18446744073709551615"},
           {"--threads", cores_and_one},
           {"--threads", "1"},
           {"--first", "18446744073709551615"},
           {"--max-chars", "0"},
           {"--max-chars", "0009"},
       }) {
    RunWell(Arguments{"generate", "--model", kM8, "--max-chars", "9"} + flags);
  }
}

// The last number of all may be taken; those behind it do not begin anew at 0.
TEST(Values, NumbersOfCompletionsDoNotWrap) {
  const Arguments last = {"generate", "--model", kM8,       "--max-chars",          "9",        "--seed", "1",
                          "--format", "jsonl",   "--first", "18446744073709551615", "--prompt", "a"};
  const std::string expected = Records(RunWell(last)).at(0).at("text");
  const RunResult beyond = RunOctavo(last + Arguments{"--prompt", "b"});
  EXPECT_EQ(beyond.exit_code, 1);
  const std::vector<Json> records = Records(beyond);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].at("text"), expected);
  for (const Json& record : {records[1], Records(RunOctavo(last + Arguments{"--samples", "2"})).at(0)}) {
    EXPECT_EQ(record.at("finish"), "error");
    EXPECT_NE(record.at("error").get<std::string>().find("beyond 2^64 - 1; expected a smaller --first"),
              std::string::npos);
  }
}

// As JSON's numbers are.
TEST(Values, TooSmallForADoubleAreZero) {
  const Arguments generate = {"generate", "--model", kM8, "--max-chars", "40", "--seed", "3", "--quiet"};
  const std::string greedy = RunWell(generate + Arguments{"--temperature", "0"}).out;
  EXPECT_NE(RunWell(generate).out, greedy);
  for (const std::string& value : {std::string("1e-400"), std::string("-1E-400"), std::string("123.4e-99999999999"),
                                   "0." + std::string(400, '0') + "1", "0." + std::string(700, '0') + "1e+300"}) {
    EXPECT_EQ(RunWell(generate + Arguments{"--temperature", value}).out, greedy) << value;
  }
}

TEST(Values, AreTakenAsTheyAre) {
  const std::vector<std::string> prompts = {"",    "-x", "--foo", "[a,b]", "{}",   "%%", "--",     "--seed",
                                            "a=b", "=",  "-",     "-1",    "++",   "/x", "@file",  "generate",
                                            "'",   "\"", "$a",    "*",     "a,b,", "é😀", "a\n\nb", " a "};
  Arguments apart = {"generate", "--model", kM8, "--unknown", "skip", "--max-chars", "0", "--format", "jsonl"};
  Arguments attached = apart;
  for (const std::string& prompt : prompts) {
    apart = apart + Arguments{"--prompt", prompt};
    attached = attached + Arguments{"--prompt=" + prompt};
  }
  const RunResult result = RunWell(apart);
  EXPECT_EQ(Column(Records(result), "prompt"), std::vector<Json>(prompts.begin(), prompts.end()));
  EXPECT_EQ(RunWell(attached).out, result.out);
}

TEST(Values, GivenAgainTheLastCounts) {
  const Arguments once = {"generate", "--model", kM8, "--seed", "5", "--max-chars", "9", "--quiet"};
  const Arguments again = {"generate",      "--model", "tiny", "--seed",        "4",      "--model", kM8,
                           "--max-chars=1", "--seed",  "5",    "--max-chars=9", "--quiet"};
  EXPECT_EQ(RunWell(again).out, RunWell(once).out);
}

TEST(Failures, AreOneLineAndExitOne) {
  const TemporaryFolder folder;
  const std::string loop = (folder.path() / "loop").string();
  std::filesystem::create_symlink(loop, loop);
  const std::string long_name = std::string(80, 'd') + "/" + std::string(80, 'f') + ".txt";
  const std::vector<WrongUse> cases = {
      {{"generate", "--model", "nowhere"}, "'nowhere'"},
      {{"info", "--model", ""}, "model ''"},
      {{"info", "--model", folder.path().string()}, "model.safetensors"},
      {{"info", "--model", "/dev/null"}, "not a regular file"},
      {{"info", "--model", long_name}, long_name},
      {{"info", "--model", loop}, "'" + loop + "' cannot be opened: Too many levels of symbolic links"},
      {{"check", "--model", "nowhere"}, "'nowhere'"},
      {{"score", "nowhere.txt"}, "cannot open 'nowhere.txt': No such file"},
      {{"score", ""}, "cannot open ''"},
      {{"score", "--", "-nowhere"}, "'-nowhere'"},
      {{"score", "[a,b]"}, "'[a,b]'"},
      {{"score", "generate"}, "'generate'"},
      {{"generate", "--prompts", long_name}, long_name},
      {{"generate", "--prompts", ""}, "cannot open ''"},
      {{"generate", "--prompts", "--quiet"}, "cannot open '--quiet'"},
      {{"generate", "--prompts", folder.path().string(), "--quiet"}, "is a directory"},
      {{"generate", "--prompts", "a\nb"}, "'a\\nb'"},
  };
  for (const WrongUse& wrong : cases) {
    SCOPED_TRACE(Show(wrong.arguments));
    ExpectOneMessage(RunOctavo(wrong.arguments), 1, wrong.part);
  }
}

TEST(Quiet, LeavesOnlyErrors) {
  const Arguments generate = {"generate", "--model", kM8, "--max-chars", "3", "--prompts", "-"};
  EXPECT_EQ(Lines(RunWell(generate, {.input = "a\n"}).err).size(), 2u) << "seed and closing line";
  EXPECT_EQ(RunWell(generate + Arguments{"--quiet"}, {.input = "a\n"}).err, "");
  EXPECT_EQ(RunWell({"score", "-", "--model", kM8, "--quiet"}, {.input = "ab\n"}).err, "");
  EXPECT_EQ(RunPartly(generate + Arguments{"--quiet"}, {.input = "a\nx\n"}).err,
            "octavo: standard input line 2: character 1 is U+0078 'x', which the model's vocabulary lacks\n");
}

TEST(Outputs, FullDiskIsSaid) {
  const TemporaryFolder folder;
  const std::string text = folder.Write("text.txt", "abcabc");
  for (const Arguments& arguments : std::vector<Arguments>{
           {"--help"},
           {"--version"},
           {"score", "--help"},
           {"attend", "abc", "--model", kM8},
           {"attend", "abc", "--model", kM8, "--format", "json"},
           {"info"},
           {"check", "--cases", "1"},
           {"check", "--cases", "1", "--format", "json"},
           {"score", "--model", kM8, text, "--document", "--quiet"},
           {"generate", "--model", kM8, "--samples", "2000000", "--quiet"},
           {"generate", "--model", kM8, "--samples", "2000000", "--quiet", "--format", "lines"},
           {"generate", "--model", kM8, "--samples", "2000000", "--quiet", "--format", "jsonl"},
       }) {
    SCOPED_TRACE(Show(arguments));
    ExpectOneMessage(RunOctavo(arguments, {.output_path = "/dev/full"}), 1,
                     "cannot write to standard output: No space left on device");
  }
}

TEST(Outputs, MessagesThatCannotBeWrittenChangeNothing) {
  const Arguments arguments = {"generate", "--model", kM8, "--max-chars", "20", "--seed", "1"};
  EXPECT_EQ(RunWell(arguments, {.messages_path = "/dev/full"}).out, RunWell(arguments).out);
  EXPECT_EQ(RunOctavo({"bogus"}, {.messages_path = "/dev/full"}).exit_code, 2);
}

TEST(Outputs, ClosedPipeStopsQuietlyAndSoon) {
  const Arguments arguments = {"generate", "--model", kM8, "--samples", "2000000", "--quiet", "--max-chars", "50"};
  for (const bool ignore : {false, true}) {
    const RunResult result = RunOctavo(arguments, {.close_output_after_bytes = 100, .ignore_closed_pipes = ignore});
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.exit_code, 128 + 13);
    EXPECT_EQ(result.err, "");
    EXPECT_LT(result.peak_memory_bytes, 200u << 20);
  }
}

}  // namespace
}  // namespace octavo::test
