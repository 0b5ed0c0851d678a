// octavo generate --resume refuses what is not a beginning of the run that is asked for: other settings, prompts or versions, damaged and hostile
// records, files that were changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tests/testing/resume.h"

namespace octavo::test {
namespace {

const Arguments kModd = {"generate", "--model",     Golden("modd"), "--temperature",
                         "1e30",     "--max-chars", "12",           "--quiet"};

// ---- what differs ----

class RefusalTest : public ResumeTest {
 protected:
  RefusalTest() {
    RunWell(run_);
    part_ = ReadFile(out_).substr(0, 60);
    Break(part_, part_.size());
  }

  // Refused with one message, and what is there stays.
  void ExpectRefused(const Arguments& arguments, std::string_view part) const {
    SCOPED_TRACE(Show(arguments));
    const std::string record = ReadFile(out_ + ".run");
    ExpectOneMessage(RunOctavo(arguments + Arguments{"--resume"}), 1, part);
    EXPECT_EQ(ReadFile(out_), part_);
    EXPECT_EQ(ReadFile(out_ + ".run"), record);
  }

  const std::string prompts_ = folder_.Write("prompts.txt", "a\nb\nc\n\nab\n");
  const Arguments base_ = kModd + Arguments{"--output", out_};
  const Arguments run_ =
      base_ + Arguments{"--prompt", "x", "--prompt", "y", "--prompts", prompts_, "--seed", "1", "--format", "lines"};
  std::string part_;
};

TEST_F(RefusalTest, FlagsThatDiffer) {
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"--seed", "2"}, "out': its seed is 1, that of this run 2; expected the same (see "},
      {{"--first", "1"}, "its first is 0, that of this run 1"},
      {{"--samples", "2"}, "its settings.samples is 1, that of this run 2"},
      {{"--max-chars", "13"}, "its settings.max_chars is 12, that of this run 13"},
      {{"--stop", "Q"}, "its settings.stop is [], that of this run [\"Q\"]"},
      {{"--temperature", "1"}, "its settings.temperature is 1e+30, that of this run 1.0"},
      {{"--top-k", "3"}, "its settings.top_k is 0, that of this run 3"},
      {{"--top-p", "0.5"}, "its settings.top_p is 1.0, that of this run 0.5"},
      {{"--overflow", "restart"}, "its settings.overflow is \"slide\", that of this run \"restart\""},
      {{"--kv", "bf16"}, "its settings.kv is \"f32\", that of this run \"bf16\""},
      {{"--unknown", "skip"}, "its prompts.unknown is \"error\", that of this run \"skip\""},
      {{"--format", "jsonl"}, "its format is \"lines\", that of this run \"jsonl\""},
      {{"--input-format", "jsonl"}, "its prompts.json_lines is false, that of this run true"},
      {{"--model", "tiny"}, "its model is \""},
      {{"--prompt", "z"}, "its prompts.flags is \""},
  };
  for (const auto& [more, part] : cases) ExpectRefused(run_ + more, part);
  // Texts that are the same only when put together.
  const Arguments end = {"--prompts", prompts_, "--seed", "1", "--format", "lines"};
  ExpectRefused(base_ + Arguments{"--prompt", "xy"} + end, "its prompts.flags is \"");
  ExpectRefused(base_ + Arguments{"--prompt", "y", "--prompt", "x"} + end, "its prompts.flags is \"");
  ExpectRefused(base_ + Arguments{"--prompt", "x", "--prompt", "y", "--seed", "1", "--format", "lines"},
                "its prompts.file is \"");
}

TEST_F(RefusalTest, PromptsThatDiffer) {
  for (const char* changed : {"", "a\nb\nc\n\nab", "a\nb\nc\n\nabc\n", "a\nb\nd\n\nab\n"}) {
    folder_.Write("prompts.txt", changed);
    ExpectRefused(run_, "its prompts.file is \"");
  }
  // The same under another name is the same.
  folder_.Write("elsewhere.txt", "a\nb\nc\n\nab\n");
  RunWell(base_ + Arguments{"--prompt", "x", "--prompt", "y", "--prompts", Path("elsewhere.txt"), "--seed", "1",
                            "--format", "lines", "--resume"});
}

TEST_F(RefusalTest, InputThatCannotBeReadAgain) {
  const Arguments from_pipe = base_ + Arguments{"--prompts", "-", "--seed", "1", "--format", "lines"};
  ExpectRefused(from_pipe, "cannot resume '" + out_ + "': standard input cannot be read again; expected a file");
  ExpectRefused(base_ + Arguments{"--prompts", "/dev/null", "--seed", "1", "--format", "lines"},
                "/dev/null cannot be read again");
  // A run that came from there is no run of a file.
  RunWell(from_pipe + Arguments{"--force"}, {.input = ReadFile(prompts_)});
  part_ = ReadFile(out_);
  ExpectRefused(base_ + Arguments{"--prompts", prompts_, "--seed", "1", "--format", "lines"},
                "its prompts.file is null");
}

TEST_F(RefusalTest, RecordsThatDiffer) {
  const std::string good = ReadFile(out_ + ".run");
  for (const auto& [key, value] : std::vector<std::pair<std::string, Json>>{
           {"octavo", "0.0.0"}, {"numerics", 0}, {"fused_multiply_add", nullptr}, {"model", "0"}, {"format", "text"}}) {
    Json record = Json::parse(good);
    ASSERT_TRUE(record.contains(key));
    record[key] = value;
    WriteFile(out_ + ".run", record.dump());
    ExpectRefused(run_, "its " + key + " is " + value.dump() + ", that of this run ");
    record.erase(key);
    WriteFile(out_ + ".run", record.dump());
    ExpectRefused(run_, "its " + key + " is null, that of this run ");
  }
}

TEST_F(RefusalTest, RecordsThatAreDamaged) {
  const std::string good = ReadFile(out_ + ".run");
  const std::vector<std::string> damaged = {"",
                                            "{",
                                            "\xFF",
                                            "[]",
                                            "null",
                                            "7",
                                            "\"x\"",
                                            "{}",
                                            std::string(100'000, '['),
                                            good.substr(0, good.size() / 2),
                                            good + "x",
                                            "{\"seed\": -1}",
                                            "{\"seed\": \"1\"}"};
  for (const std::string& text : damaged) {
    WriteFile(out_ + ".run", text);
    ExpectRefused(run_, "is damaged; expected the record of a run");
    // Also where its seed is asked for.
    ExpectRefused(base_ + Arguments{"--format", "lines"}, "is damaged; expected the record of a run");
  }
  std::filesystem::remove(out_ + ".run");
  ExpectRefused(run_, "there is no '" + out_ + ".run' beside it");
  std::filesystem::create_directory(out_ + ".run");
  ExpectOneMessage(RunOctavo(run_ + Arguments{"--resume"}), 1, "out.run' is a directory");
  EXPECT_EQ(ReadFile(out_), part_);
}

// Values of FILE.run come from who knows where: bounded, and nothing of them moves a terminal.
TEST_F(RefusalTest, RecordsThatAreHostile) {
  const std::string good = ReadFile(out_ + ".run");
  const auto expect_damaged = [&](const std::string& text) {
    WriteFile(out_ + ".run", text);
    ExpectRefused(run_, "is damaged; expected the record of a run");
  };
  for (const char* bracket : {"[", "{\"a\":"}) {
    std::string nested = good;
    for (int i = 0; i < 200'000; ++i)
      nested.insert(nested.rfind('}'), i == 0 ? std::string(",\"x\":") + bracket : bracket);
    expect_damaged(nested);
  }
  std::string deep = "{\"seed\": 1, \"stop\": ";
  for (const size_t depth : {size_t{9}, size_t{200'000}}) {
    expect_damaged(deep + std::string(depth, '[') + std::string(depth, ']') + "}");
  }
  expect_damaged("{\"seed\": 1, \"octavo\": \"" + std::string(17 << 20, 'x') + "\"}");
  for (const char* marks : {"7", "[7]", "[[1, 2]]", "[[1, 1, 1]]", "[[1, 1, \"x\"]]", "[[0, 0, \"0\"]]",
                            "[[9, 1, \"0\"], [9, 2, \"0\"]]", "[[-1, 1, \"0\"]]", "[[1e3, 1, \"0\"]]"}) {
    Json record = Json::parse(good);
    record["written"] = Json::parse(marks);
    expect_damaged(record.dump());
  }
  for (const std::string value : {"\u009B31m", "\u202E", "\u001B[2J", "\u0007", "\u2028"}) {
    Json record = Json::parse(good);
    record["model"] = value + std::string(1'000'000, 'x');
    WriteFile(out_ + ".run", record.dump());
    ExpectRefused(run_, "its model is \"\\u");
    const std::string message = RunOctavo(run_ + Arguments{"--resume"}).err;
    EXPECT_EQ(message.find(value), std::string::npos);
    EXPECT_LT(message.size(), 700u);
  }
}

// What differs far inside of long values is shown.
TEST_F(ResumeTest, ManyStopsAreResumedAndCompared) {
  Arguments run = kModd + Arguments{"--samples", "3", "--seed", "1", "--format", "lines", "--output", out_};
  for (int i = 0; i < 10'000; ++i) run = std::move(run) + Arguments{"--stop", "no such text " + std::to_string(i)};
  RunWell(run);
  const std::string whole = ReadFile(out_);
  Break(whole, whole.size() / 2);
  RunWell(run + Arguments{"--resume"});
  EXPECT_EQ(ReadFile(out_), whole);
  run[run.size() - 2001] = "another text";
  const RunResult result = RunOctavo(run + Arguments{"--resume"});
  ExpectOneMessage(result, 1, "its settings.stop is …");
  EXPECT_NE(result.err.find("another text"), std::string::npos) << result.err;
  EXPECT_LT(result.err.size(), 700u);
}

// ---- files that are not what the run wrote ----

class ChangedTest : public ResumeTest {
 protected:
  // Runs of `count` completions; `lines_` are theirs.
  Arguments Begin(const std::string& format, int count) {
    const Arguments run =
        kModd + Arguments{"--samples", std::to_string(count), "--seed", "3", "--format", format, "--output", out_};
    RunWell(run + Arguments{"--force"});
    whole_ = ReadFile(out_);
    lines_ = Lines(whole_);
    return run + Arguments{"--resume"};
  }

  void ExpectRefused(const Arguments& run, const std::vector<std::string>& lines, std::string_view part) const {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    ExpectTextRefused(run, text, part);
    ExpectTextRefused(run, text + "unfini", part);
  }
  void ExpectTextRefused(const Arguments& run, const std::string& text, std::string_view part) const {
    WriteFile(out_, text);
    const std::string record = ReadFile(out_ + ".run");
    ExpectOneMessage(RunOctavo(run), 1, part);
    EXPECT_EQ(ReadFile(out_), text) << "nothing is cut or written";
    EXPECT_EQ(ReadFile(out_ + ".run"), record);
  }

  // As versions before there were hashes wrote it.
  void DropMarks() const {
    Json record = Json::parse(ReadFile(out_ + ".run"));
    ASSERT_TRUE(record.erase("written"));
    WriteFile(out_ + ".run", record.dump(2));
  }

  std::string whole_;
  std::vector<std::string> lines_;
};

TEST_F(ChangedTest, LinesRemovedAddedOrSwapped) {
  for (const std::string format : {"lines", "jsonl"}) {
    const Arguments run = Begin(format, 10);
    for (size_t at = 0; at < 9; ++at) {
      SCOPED_TRACE(at);
      const std::string there = "out': line " + std::to_string(at + 1) + " is not what ";
      std::vector<std::string> lines = lines_;
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      ExpectRefused(run, lines, there);
      lines = lines_;
      std::swap(lines[at], lines[at + 1]);
      ExpectRefused(run, lines, there);
      lines = lines_;
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), "one more");
      ExpectRefused(run, lines, there);
      lines = lines_;
      lines[at][lines[at].size() / 2] ^= 1;
      ExpectRefused(run, lines, there);
    }
    WriteFile(out_, whole_);
    RunWell(run);
    EXPECT_EQ(ReadFile(out_), whole_);
  }
}

// Many lines are the same, and the one that is not is removed: shorter than the hashes behind it reach, and its last line is right.
TEST_F(ChangedTest, OneTextAmongEmptyLines) {
  std::string prompts;
  for (const char* prompt : {"%", "%", "ab", "%", "%", "%", "%", "%", "%", "%"}) prompts += prompt + std::string("\n");
  const Arguments run = kModd + Arguments{"--prompts", folder_.Write("prompts.txt", prompts),
                                          "--seed",    "3",
                                          "--format",  "lines",
                                          "--output",  out_};
  RunPartly(run);
  std::vector<std::string> lines = Lines(ReadFile(out_));
  ASSERT_EQ(lines.size(), 10u);
  lines.erase(lines.begin() + 2);
  ExpectRefused(run + Arguments{"--resume"}, lines, "out': line 3 is not what this run writes there");
}

// Where FILE.run has no hashes, the last line tells.
TEST_F(ChangedTest, BehindTheHashes) {
  for (const std::string format : {"lines", "jsonl"}) {
    const Arguments run = Begin(format, 10);
    DropMarks();
    for (const size_t at : {size_t{0}, size_t{4}, size_t{8}}) {
      std::vector<std::string> lines = lines_;
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      ExpectRefused(run, lines,
                    "out': line 9 is not what this run writes there, so it or others were changed, removed");
    }
    ExpectRefused(run, {lines_[0] + "x"}, "out': line 1 is not what this run writes there");
    ExpectRefused(run, {lines_[0], ""}, "out': line 2 is not what this run writes there");
    // As they were, old records are resumed.
    Break(whole_, whole_.size() / 2);
    RunWell(run);
    EXPECT_EQ(ReadFile(out_), whole_);
  }
}

// Hashes stand at intervals in long files: a change is found, and where it is.
TEST_F(ChangedTest, InLongFiles) {
  const Arguments run = Begin("lines", 3000);
  const Json marks = Json::parse(ReadFile(out_ + ".run")).at("written");
  EXPECT_GE(marks.size(), 256u);
  EXPECT_LE(marks.size(), 513u);
  EXPECT_EQ(marks.back()[1], 3000);
  std::vector<std::string> lines = lines_;
  lines.erase(lines.begin() + 2);
  ExpectRefused(run, lines, "line 1 or one up to 8 is not what was written there (see '");
  lines = lines_;
  lines[2000] += "x";
  ExpectRefused(run, lines, " or one up to 20");
  for (const size_t part : {size_t{2}, size_t{3}, size_t{10}}) {
    Break(whole_, whole_.size() / part);
    RunWell(run);
    ASSERT_TRUE(ReadFile(out_) == whole_);
    ASSERT_EQ(Json::parse(ReadFile(out_ + ".run")).at("written"), marks) << "hashes go on where they were";
  }
}

TEST_F(RefusalTest, MoreLinesThanTheRun) {
  RunWell(run_ + Arguments{"--resume"});
  part_ = ReadFile(out_) + "one more\n";
  WriteFile(out_, part_);
  ExpectRefused(run_, "out': it has 8 lines, the whole run 7");
}

}  // namespace
}  // namespace octavo::test
