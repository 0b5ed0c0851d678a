// octavo generate --resume: a run that was broken anywhere gives, once resumed, the bytes of an unbroken one. What is refused:
// command_refused_resume_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <random>

#include "tests/testing/resume.h"

namespace octavo::test {
namespace {

using Clock = std::chrono::steady_clock;

// ---- killed ----

std::string ManyPrompts(size_t count) {
  std::string prompts;
  for (size_t i = 0; i < count; ++i) prompts += std::string("ROMEO:").substr(0, i % 7) + "\n";
  return prompts;
}

#ifdef OCTAVO_TEST_SANITIZED
constexpr size_t kNumPrompts = 2'000;  // a run takes 20 times as long
#else
constexpr size_t kNumPrompts = 20'000;
#endif

TEST_F(ResumeTest, KilledTenTimesEqualsUnbroken) {
  const std::string prompts = folder_.Write("prompts.txt", ManyPrompts(kNumPrompts));
  for (const std::string format : {"lines", "jsonl"}) {
    const Arguments run = {"generate", "--prompts", prompts, "--max-chars", "16", "--seed", "5", "--format", format};
    const Clock::time_point begin = Clock::now();
    const std::string whole = RunWell(run).out;
    const Clock::duration unbroken = Clock::now() - begin;
    ASSERT_EQ(Lines(whole).size(), kNumPrompts);
    std::mt19937 random(7);
    size_t num_broken = 0;
    for (size_t kill = 0; kill < 10; ++kill) {
      Process process(run + Arguments{"--output", out_, kill == 0 ? "--force" : "--resume"});
      if (kill < 2) {  // in the middle for sure
        process.TalkUntil([&] { return FileBytes(out_) > (kill + 1) * whole.size() / 4; });
      } else {
        const Clock::time_point end = Clock::now() + unbroken * (random() % 1000) / 8000;
        process.TalkUntil([&] { return Clock::now() >= end; });
      }
      process.Signal(SIGKILL);
      process.Wait();
      const std::string there = ReadFile(out_);
      ASSERT_TRUE(whole.starts_with(there)) << "kill " << kill << ": no prefix of the whole run";
      num_broken += there.size() < whole.size();
    }
    EXPECT_GE(num_broken, 1u);
    RunWell(run + Arguments{"--output", out_, "--resume"});
    EXPECT_TRUE(ReadFile(out_) == whole) << format;
  }
}

// The records in hand are finished before a run ends, so every line is whole.
TEST_F(ResumeTest, InterruptedAndTerminatedEqualsUnbroken) {
  const std::string prompts = folder_.Write("prompts.txt", ManyPrompts(kNumPrompts));
  for (const std::string format : {"lines", "jsonl"}) {
    const Arguments run = {"generate", "--prompts", prompts, "--max-chars", "16", "--seed", "5", "--format", format};
    const std::string whole = RunWell(run).out;
    std::filesystem::remove(out_);  // whose size is looked at
    std::filesystem::remove(out_ + ".run");
    size_t eighth = 0;  // well before the end, for this process may be late
    for (const int signal : {SIGINT, SIGTERM, SIGINT}) {
      Process process(run + Arguments{"--output", out_, "--resume"});
      ++eighth;
      process.TalkUntil([&] { return FileBytes(out_) > eighth * whole.size() / 8; });
      process.Signal(signal);
      EXPECT_EQ(process.Wait().exit_code, 128 + signal);
      const std::string there = ReadFile(out_);
      ASSERT_TRUE(whole.starts_with(there)) << format << ", signal " << signal << ": no prefix of the whole run";
      EXPECT_LT(there.size(), whole.size());
      EXPECT_TRUE(there.ends_with('\n'));
    }
    RunWell(run + Arguments{"--output", out_, "--resume"});
    EXPECT_TRUE(ReadFile(out_) == whole) << format;
  }
}

// ---- cut anywhere ----

const Arguments kModd = {"generate", "--model",     Golden("modd"), "--temperature",
                         "1e30",     "--max-chars", "12",           "--quiet"};

TEST_F(ResumeTest, CutAtEveryByteOfItsLastTexts) {
  for (const std::string format : {"lines", "jsonl"}) {
    const Arguments run = kModd + Arguments{"--samples", "60", "--seed", "3", "--format", format, "--output", out_};
    RunWell(run + Arguments{"--force"});
    const std::string whole = ReadFile(out_);
    size_t inside_of_characters = 0;
    // At each of the last bytes, and inside of all characters of several bytes near the end.
    for (size_t bytes = whole.size() - 600; bytes <= whole.size(); ++bytes) {
      const bool inside = bytes < whole.size() && (static_cast<unsigned char>(whole[bytes]) & 0xC0) == 0x80;
      if (!inside && bytes + 40 < whole.size()) continue;
      inside_of_characters += inside;
      Break(whole, bytes);
      RunWell(run + Arguments{"--resume"});
      ASSERT_TRUE(ReadFile(out_) == whole) << "cut at " << bytes;
    }
    EXPECT_GE(inside_of_characters, 3u) << "the test needs characters of several bytes";
    for (const size_t bytes : {size_t{0}, size_t{1}, whole.find('\n'), whole.find('\n') + 1, whole.size() / 2}) {
      Break(whole, bytes);
      RunWell(run + Arguments{"--resume", "--threads", bytes % 2 ? "1" : "3"});
      ASSERT_TRUE(ReadFile(out_) == whole) << "cut at " << bytes;
    }
  }
}

TEST_F(ResumeTest, JsonLinesFirstSamplesAndSeedsOfTheirOwn) {
  const std::string prompts =
      folder_.Write("in.jsonl",
                    "{\"prompt\": \"ab\", \"samples\": 5, \"id\": 1}\n"
                    "{\"prompt\": \"\", \"seed\": 9, \"samples\": 4}\n"
                    "not JSON\n"
                    "\n"
                    "{\"prompt\": \"no % here\", \"samples\": 3}\n"
                    "{\"prompt\": \"é\", \"max_chars\": 70, \"samples\": 7, \"stop\": [\"Z\"]}\n");
  const Arguments run = kModd + Arguments{"--prompt", "first", "--prompts", prompts, "--samples", "2", "--seed", "3",
                                          "--first",  "1000",  "--format",  "jsonl", "--output",  out_};
  RunPartly(run);
  const std::string whole = ReadFile(out_);
  EXPECT_EQ(Lines(whole).size(), 2u + 5 + 4 + 1 + 1 + 7);
  for (size_t bytes = 0; bytes <= whole.size(); bytes += 131) {
    Break(whole, bytes);
    RunPartly(run + Arguments{"--resume"});  // also where all that fails stands already
    ASSERT_TRUE(ReadFile(out_) == whole) << "cut at " << bytes;
  }
}

TEST_F(ResumeTest, FailuresThatStandAreFailuresStill) {
  const Arguments run = kModd + Arguments{"--prompt", "no % here", "--prompt", "ab",       "--seed",
                                          "1",        "--format",  "lines",    "--output", out_};
  RunPartly(run);
  const std::string whole = ReadFile(out_);
  EXPECT_TRUE(whole.starts_with("\n"));
  for (const size_t bytes : {size_t{1}, whole.size()}) {
    Break(whole, bytes);
    RunPartly(run + Arguments{"--resume"});
    EXPECT_EQ(ReadFile(out_), whole);
  }
}

// ---- where there is nothing to resume ----

TEST_F(ResumeTest, NothingBeginsAnew) {
  const Arguments run =
      kModd + Arguments{"--samples", "3", "--seed", "1", "--format", "lines", "--output", out_, "--resume"};
  const std::string expected = RunWell(kModd + Arguments{"--samples", "3", "--seed", "1", "--format", "lines"}).out;
  RunWell(run);
  EXPECT_EQ(ReadFile(out_), expected);
  // Broken before FILE.run was there.
  std::filesystem::remove(out_ + ".run");
  WriteFile(out_, "");
  RunWell(run);
  EXPECT_EQ(ReadFile(out_), expected);
}

TEST_F(ResumeTest, CompleteStaysAsItIs) {
  const Arguments run = {"generate", "--model",  Golden("modd"), "--samples", "3", "--max-chars",
                         "5",        "--format", "lines",        "--output",  out_};
  RunWell(run);
  const std::string whole = ReadFile(out_);
  const RunResult again = RunWell(run + Arguments{"--resume"});
  EXPECT_EQ(ReadFile(out_), whole);
  const std::vector<std::string> messages = Lines(again.err);
  ASSERT_EQ(messages.size(), 2u) << again.err;
  EXPECT_EQ(messages[0], "octavo: resumed behind 3 completions");
  EXPECT_TRUE(messages[1].starts_with("octavo: 0 completions, 0 characters in ")) << again.err;
}

TEST_F(ResumeTest, SeedOfTheRunIsTaken) {
  const Arguments run = kModd + Arguments{"--samples", "9", "--format", "lines", "--output", out_};
  RunWell(run);  // with a random seed
  const std::string whole = ReadFile(out_);
  Break(whole, whole.size() / 2);
  RunWell(run + Arguments{"--resume"});
  EXPECT_EQ(ReadFile(out_), whole);
}

}  // namespace
}  // namespace octavo::test
