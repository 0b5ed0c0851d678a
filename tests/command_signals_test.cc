// INT and TERM: whole lines, the right exit code, a run that can be resumed; a second one ends at once; memory does not grow with the input.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "tests/testing/command_checks.h"
#include "tests/testing/files.h"

namespace octavo::test {
namespace {

using Clock = std::chrono::steady_clock;

const Arguments kEndless = {"generate", "--seed",      "1",  "--samples", "1000000000",
                            "--quiet",  "--max-chars", "20", "--format",  "lines"};

// Whole lines, as an unbroken run has them; not none.
void ExpectWholeLines(const std::string& text, const Arguments& endless) {
  ASSERT_TRUE(text.ends_with('\n')) << text.substr(text.size() - std::min<size_t>(text.size(), 100));
  const std::string count = std::to_string(Lines(text).size());
  EXPECT_TRUE(RunWell(endless + Arguments{"--samples", count}).out == text);
}

TEST(Signals, FinishTheRecordsInHand) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string();
  for (const auto& [signal, exit_code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    SCOPED_TRACE(exit_code);
    Process to_pipe(kEndless);
    ASSERT_TRUE(to_pipe.TalkUntil([&] { return to_pipe.so_far().out.size() > 10'000; }));
    to_pipe.Signal(signal);
    const RunResult piped = to_pipe.Wait();
    EXPECT_EQ(piped.exit_code, exit_code);
    EXPECT_EQ(piped.err, "");
    ExpectWholeLines(piped.out, kEndless);

    const Arguments to_file = {"--output", out, "--force"};
    Process filling(kEndless + to_file);
    ASSERT_TRUE(filling.TalkUntil([&] { return FileBytes(out) > 10'000; }));
    filling.Signal(signal);
    EXPECT_EQ(filling.Wait().exit_code, exit_code);
    const std::string part = ReadFile(out);
    ExpectWholeLines(part, kEndless);
    Process resumed(kEndless + Arguments{"--output", out, "--resume"});
    ASSERT_TRUE(resumed.TalkUntil([&] { return FileBytes(out) > part.size() + 10'000; }));
    resumed.Signal(signal);
    EXPECT_EQ(resumed.Wait().exit_code, exit_code);
    ExpectWholeLines(ReadFile(out), kEndless);
  }
}

TEST(Signals, EndRunsThatWaitForInput) {
  const std::string m8 = Golden("m8.safetensors");
  for (const Arguments& arguments :
       std::vector<Arguments>{{"generate", "--prompts", "-", "--model", m8, "--format", "lines"},
                              {"generate", "--prompts", "-", "--model", m8},
                              {"score", "-", "--model", m8}}) {
    SCOPED_TRACE(Show(arguments));
    Process process(arguments, {.input = "ab\nunfinished", .hold_input_until_bytes = kHoldInput});
    ASSERT_TRUE(process.TalkUntil([&] { return process.so_far().out.ends_with('\n'); }));
    process.Signal(SIGTERM);
    const RunResult result = process.Wait();
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.exit_code, 143);
    EXPECT_NE(result.err.find("octavo: 1 "), std::string::npos)
        << "the closing line counts the whole record: " << result.err;
  }
  Process document({"score", "-", "--document", "--model", m8, "--quiet"},
                   {.input = "ab", .hold_input_until_bytes = kHoldInput});
  document.TalkUntil([end = Clock::now() + std::chrono::milliseconds(300)] { return Clock::now() >= end; });
  document.Signal(SIGINT);
  const RunResult result = document.Wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.out, "") << "a document that was not read whole has no score";
}

TEST(Signals, FailuresBeforeDoNotHideTheSignal) {
  Process process({"generate", "--prompts", "-", "--model", Golden("m8.safetensors"), "--format", "lines", "--quiet"},
                  {.input = "%\n", .hold_input_until_bytes = kHoldInput});
  ASSERT_TRUE(process.TalkUntil([&] { return process.so_far().out == "\n" && !process.so_far().err.empty(); }));
  process.Signal(SIGINT);
  EXPECT_EQ(process.Wait().exit_code, 130);
}

TEST(Signals, TheSecondEndsAtOnce) {
  for (const int signal : {SIGINT, SIGTERM}) {
    // One record that takes for ever.
    Process process({"generate", "--max-chars", "1000000000000", "--format", "lines", "--quiet", "--seed", "1"});
    const auto wait = [&] {
      return process.TalkUntil([end = Clock::now() + std::chrono::milliseconds(300)] { return Clock::now() >= end; });
    };
    ASSERT_TRUE(wait());
    process.Signal(signal);
    EXPECT_TRUE(wait()) << "the first lets it finish";
    process.Signal(signal);
    const RunResult result = process.Wait();
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.exit_code, 128 + signal);
    EXPECT_EQ(result.out, "");
  }
}

TEST(Signals, IgnoredOnesStayIgnored) {
  Process process({"generate", "--prompts", "-", "--format", "lines", "--max-chars", "5", "--quiet"},
                  {.input = "a\n", .hold_input_until_bytes = kHoldInput, .ignored_signals = {SIGINT, SIGTERM}});
  const auto has_lines = [&](size_t count) {
    return process.TalkUntil([&process, count] {
      const std::string& out = process.so_far().out;
      return static_cast<size_t>(std::count(out.begin(), out.end(), '\n')) == count;
    });
  };
  ASSERT_TRUE(has_lines(1));
  process.Signal(SIGINT);
  process.Signal(SIGTERM);
  process.Send("b\n");
  EXPECT_TRUE(has_lines(2)) << "it goes on";
  process.EndInput();
  EXPECT_EQ(process.Wait().exit_code, 0);
}

#ifndef OCTAVO_TEST_SANITIZED  // sanitizers need memory of their own
TEST(Memory, DoesNotGrowWithTheNumberOfPrompts) {
  constexpr uint64_t kMebibyte = uint64_t{1} << 20;
  const TemporaryFolder folder;
  const auto peak = [&](size_t count, bool from_file) {
    std::string prompts;
    for (size_t i = 0; i < count; ++i) prompts += "A\n";
    RunOptions options{.output_path = "/dev/null"};
    if (!from_file) options.input = prompts;
    const std::string path = from_file ? folder.Write("prompts.txt", prompts) : "-";
    const RunResult result =
        RunWell({"generate", "--prompts", path, "--max-chars", "2", "--format", "lines", "--quiet"}, options);
    return result.peak_memory_bytes;
  };
  for (const bool from_file : {false, true}) {
    const uint64_t few = peak(10'000, from_file), many = peak(100'000, from_file);
    EXPECT_LT(many, 100 * kMebibyte);
    EXPECT_LE(many, few + 5 * kMebibyte) << (from_file ? "from a file" : "from standard input");
  }
}

TEST(Memory, TwoMillionCompletions) {
  const RunResult result = RunWell({"generate", "--model", Golden("m8.safetensors"), "--samples", "2000000",
                                    "--max-chars", "1", "--format", "lines"},
                                   {.output_path = "/dev/null"});
  EXPECT_NE(result.err.find("octavo: 2000000 completions, "), std::string::npos) << result.err;
  EXPECT_LT(result.peak_memory_bytes, uint64_t{100} << 20);
}
#endif

}  // namespace
}  // namespace octavo::test
