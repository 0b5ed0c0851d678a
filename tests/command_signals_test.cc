// INT and TERM: whole lines, the right exit code, a run that can be resumed; what takes too long is dropped; a second one ends at once; memory
// does not grow with the input.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>

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

// ---- records that take too long ----

const std::string kForEver = R"({"prompt": "a", "max_chars": 1000000000000})",
                  kShort = R"({"prompt": "a", "max_chars": 5})";
constexpr std::string_view kNotice =
    "octavo: stopping; completions in hand have 2 s to be finished, a second signal ends at once\n";

bool Says(const Process& process, std::string_view text) {
  return process.so_far().err.find(text) != std::string::npos;
}

// It has begun, and computed for longer than reading its model and its input takes.
bool IsInHand(const Process& process) {
  return process.Catches(SIGINT) && process.CpuTime() > std::chrono::milliseconds(300);
}

// A short record, one without end, and a short one behind it. They are in hand once the first is out.
const Arguments kPrompts = {"generate", "--prompts", "-", "--format", "lines", "--seed", "1"};

TEST(Signals, RecordsThatAreNotWholeInTimeAreDropped) {
  const std::string first = RunWell(kPrompts + Arguments{"--input-format", "jsonl"}, {.input = kShort}).out;
  for (const auto& [signal, exit_code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    SCOPED_TRACE(exit_code);
    Process process(kPrompts + Arguments{"--input-format", "jsonl"},
                    {.input = kShort + "\n" + kForEver + "\n" + kShort + "\n", .hold_input_until_bytes = kHoldInput});
    ASSERT_TRUE(process.TalkUntil([&] { return process.so_far().out == first; }));
    process.Signal(signal);
    const RunResult result = process.Wait();
    EXPECT_FALSE(result.timed_out) << "it has two seconds";
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_EQ(result.out, first) << "neither the one in hand, nor the one behind it, which is whole";
    EXPECT_NE(result.err.find(kNotice), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("octavo: 1 completion, "), std::string::npos) << result.err;
  }
}

// Prompts and windows are read in larger pieces than steps, and several threads may wait for one of them.
TEST(Signals, EveryKindOfWorkIsDropped) {
  const TemporaryFolder folder;
  const std::string document = folder.Write("document", std::string(4'000'000, 'a'));  // over 5 s of two fast threads
  const std::string prompt(60, 'a');
  for (const Arguments& arguments : std::vector<Arguments>{
           {"generate", "--max-chars", "1000000000000"},
           {"generate", "--max-chars", "1000000000000", "--samples", "100", "--threads", "3", "--overflow", "restart"},
           {"generate", "--max-chars", "1000000000000", "--model", "small", "--prompt", prompt, "--samples", "200"},
           {"score", "--document", document, "--stride", "1", "--threads", "2"},
           {"score", document, "--model", "small", "--threads", "2"}}) {
    SCOPED_TRACE(Show(arguments));
    Process process(arguments + Arguments{"--quiet"});
    ASSERT_TRUE(process.TalkUntil([&] { return IsInHand(process); }));
    process.Signal(SIGINT);
    const RunResult result = process.Wait();
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "") << "--quiet";
  }
}

// All requests but the first are done and none may be read meanwhile: who waits for more is woken when the first is dropped.
TEST(Signals, WorkersThatWaitForTheDroppedEndToo) {
  std::string prompts = kForEver + "\n";
  for (int i = 0; i < 5000; ++i)
    prompts += R"({"prompt": "a", "max_chars": 1})"
               "\n";
  Process process(kPrompts + Arguments{"--input-format", "jsonl", "--quiet", "--threads", "2"}, {.input = prompts});
  ASSERT_TRUE(process.TalkUntil([&] { return IsInHand(process); }));
  process.Signal(SIGINT);
  const RunResult result = process.Wait();
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.out, "");
}

TEST(Signals, TheSecondEndsAtOnce) {
  using Seconds = std::chrono::duration<double>;
  for (const auto& [first_signal, second_signal] : {std::pair(SIGINT, SIGINT), std::pair(SIGTERM, SIGINT)}) {
    SCOPED_TRACE(first_signal);
    // Once is enough: where others take the CPU, the end may come later than the signal asks for.
    Seconds fastest(1e9);
    for (int attempt = 0; attempt < 10 && fastest > Seconds(1.5); ++attempt) {
      Process process(kPrompts + Arguments{"--input-format", "jsonl"},
                      {.input = kShort + "\n" + kForEver + "\n", .hold_input_until_bytes = kHoldInput});
      ASSERT_TRUE(process.TalkUntil([&] { return !process.so_far().out.empty(); }));
      process.Signal(first_signal);
      ASSERT_TRUE(process.TalkUntil([&] { return Says(process, kNotice); }));
      const Clock::time_point begin = Clock::now();
      process.Signal(second_signal);
      const RunResult result = process.Wait();
      fastest = std::min(fastest, Seconds(Clock::now() - begin));
      EXPECT_FALSE(result.timed_out);
      EXPECT_GE(result.exit_code, 128 + std::min(first_signal, second_signal));
      EXPECT_LE(result.exit_code, 128 + std::max(first_signal, second_signal));
      EXPECT_EQ(Lines(result.out).size(), 1u);
    }
    EXPECT_LT(fastest, Seconds(1.5)) << "not after the two seconds of the first";
  }
}

// What was whole and in order when the second came is in the file, none of it lost and none half.
TEST(Signals, TheSecondKeepsWhatIsWhole) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string();
  Arguments endless = {"generate", "--seed", "1", "--samples", "1000000000", "--max-chars", "20", "--format", "lines"};
  Process process(endless + Arguments{"--output", out});
  ASSERT_TRUE(process.TalkUntil([&] { return FileBytes(out) > 10'000; }));
  process.Signal(SIGINT);
  process.Signal(SIGTERM);
  const RunResult result = process.Wait();
  EXPECT_TRUE(result.exit_code == 130 || result.exit_code == 143) << result.exit_code;
  const std::string part = ReadFile(out);
  ExpectWholeLines(part, endless + Arguments{"--quiet"});
  EXPECT_NE(result.err.find(fmt::format("octavo: {} completions, ", Lines(part).size())), std::string::npos)
      << result.err;
}

// A reader that has stalled keeps the run from writing what is left; then the second signal ends it all the same.
TEST(Signals, TheSecondEndsARunWhoseReaderStalls) {
  Process process(kEndless, {.pause_output_after_bytes = 1});
  // Longer than it takes to fill the pipe.
  ASSERT_TRUE(process.TalkUntil([&] { return !process.so_far().out.empty() && IsInHand(process); }));
  process.Signal(SIGINT);
  process.TalkUntil([end = Clock::now() + std::chrono::milliseconds(100)] { return Clock::now() >= end; });
  process.Signal(SIGINT);
  const RunResult result = process.Wait();
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 130);
}

TEST(Signals, SayHowToGoOn) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "it's out").string();
  const Arguments arguments = {"generate", "--seed", "1",           "--samples", "1000000",  "--format", "lines",
                               "--stop",   "\n",     "--max-chars", "20",        "--output", out};
  const auto interrupt = [&](const Arguments& all) {
    Process process(all);
    EXPECT_TRUE(process.TalkUntil([&] { return FileBytes(out) > 1000 && process.Catches(SIGINT); }));
    process.Signal(SIGINT);
    return process.Wait();
  };
  const RunResult result = interrupt(arguments + Arguments{"--force"});
  EXPECT_EQ(result.exit_code, 130);
  const std::string opening = "octavo: interrupted; to go on: ";
  const size_t begin = result.err.find(opening);
  ASSERT_NE(begin, std::string::npos) << result.err;
  std::string command = result.err.substr(begin + opening.size());
  command.pop_back();
  EXPECT_EQ(command.find("--force"), std::string::npos) << command;
  EXPECT_TRUE(command.ends_with(" --resume")) << command;
  // As Bash reads it: the same words.
  const std::string words = (folder.path() / "words").string();
  const std::string script =
      folder.Write("words.sh", "set -- " + command + "\nprintf '%s\\0' \"${@:2}\" >'" + words + "'\n");
  ASSERT_EQ(std::system(("bash '" + script + "'").c_str()), 0);
  std::string expected;
  for (const std::string& word : arguments + Arguments{"--resume"}) expected += word + '\0';
  EXPECT_EQ(ReadFile(words), expected);
  EXPECT_NE(interrupt(arguments + Arguments{"--resume"}).err.find(opening), std::string::npos);
  EXPECT_EQ(interrupt(arguments + Arguments{"--resume", "--quiet"}).err, "");
}

TEST(Signals, StreamedTextsReportWhatWasShown) {
  Process process({"generate", "--seed", "1", "--max-chars", "1000000000000"}, {.terminal = true});
  ASSERT_TRUE(process.TalkUntil([&] { return process.so_far().out.size() > 100; }));
  process.Signal(SIGINT);
  const RunResult result = process.Wait();
  EXPECT_EQ(result.exit_code, 130);
  ASSERT_TRUE(result.out.ends_with('\n'));
  EXPECT_TRUE(result.err.starts_with(
      fmt::format("octavo: 1 completion (interrupted), {} characters in ", result.out.size() - 1)))
      << result.err << " of " << result.out.size();
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
