// octavo generate --output: what the file holds, which names are refused, and that records leave at once or their failure ends the run.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>

#include "tests/testing/command_checks.h"
#include "tests/testing/files.h"

namespace octavo::test {
namespace {

using Clock = std::chrono::steady_clock;

const Arguments kGenerate = {"generate", "--model", Golden("modd"), "--seed", "1", "--max-chars", "12", "--quiet"};
const Arguments kSix = kGenerate + Arguments{"--prompt", "ab", "--prompt", "", "--samples", "3"};

class OutputTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }
  Arguments ToFile(const std::string& format = "lines") const { return {"--format", format, "--output", out_}; }

  const TemporaryFolder folder_;
  const std::string out_ = Path("out");
};

TEST_F(OutputTest, HoldsTheBytesOfStandardOutput) {
  for (const std::string format : {"lines", "jsonl"}) {
    const std::string expected = RunWell(kSix + Arguments{"--format", format}).out;
    EXPECT_EQ(Lines(expected).size(), 6u);
    const RunResult result = RunWell(kSix + ToFile(format) + Arguments{"--force"});
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(ReadFile(out_), expected);
    EXPECT_EQ(Json::parse(ReadFile(out_ + ".run")).at("seed"), 1);
  }
  // Nothing but the two files is left.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 2);
}

TEST_F(OutputTest, AnExistingFileIsKept) {
  for (const std::string_view there : {"", "precious\n"}) {
    WriteFile(out_, there);
    ExpectOneMessage(RunOctavo(kSix + ToFile()), 1,
                     "out' exists; use --resume to go on with it, --force to begin anew");
    EXPECT_EQ(ReadFile(out_), there);
    EXPECT_FALSE(std::filesystem::exists(out_ + ".run"));
  }
  RunWell(kSix + ToFile() + Arguments{"--force"});
  EXPECT_EQ(ReadFile(out_), RunWell(kSix + Arguments{"--format", "lines"}).out);
  RunWell(kGenerate + ToFile() + Arguments{"--force"});
  EXPECT_EQ(Lines(ReadFile(out_)).size(), 1u) << "nothing of the longer run stays";
}

TEST_F(OutputTest, WrongUseIsSaid) {
  const auto refused = [&](const Arguments& more, int exit_code, std::string_view part) {
    SCOPED_TRACE(Show(more));
    ExpectOneMessage(RunOctavo(kSix + more), exit_code, part);
  };
  refused({"--resume"}, 2, "--resume: expected --output too");
  refused({"--force"}, 2, "--force: expected --output too");
  refused({"--resume", "--output", ""}, 2, "--resume: expected --output too");
  refused(ToFile() + Arguments{"--resume", "--force"}, 2, "--resume and --force: expected one of them");
  refused(ToFile("text"), 2, "--output: expected --format lines or jsonl");
  refused({"--output", out_}, 2, "--output: expected --format lines or jsonl");
  EXPECT_FALSE(std::filesystem::exists(out_));
  std::filesystem::create_directory(Path("folder"));
  for (const char* mode : {"--resume", "--force", "--quiet"}) {
    const auto to = [&](const std::string& path) { return Arguments{"--format", "lines", mode, "--output", path}; };
    refused(to(Path("folder")), 1, "folder' is a directory; expected a file");
    refused(to(Path("missing/out")), 1, "missing/out': No such file or directory");
    refused(to("/sys/octavo.out"), 1, "cannot open '/sys/octavo.out': Permission denied");
  }
  refused({"--format", "lines", "--resume", "--output", "/dev/null"}, 1, "'/dev/null': it is not a regular file");
}

TEST_F(OutputTest, DevicesAndPipesAreWrittenTo) {
  const RunResult result = RunWell(kSix + Arguments{"--format", "lines", "--output", "/dev/stdout"});
  EXPECT_EQ(result.out, RunWell(kSix + Arguments{"--format", "lines"}).out);
  RunWell(kSix + Arguments{"--format", "lines", "--output", "/dev/null"});
  EXPECT_FALSE(std::filesystem::exists("/dev/null.run"));
}

TEST_F(OutputTest, TwoRunsDoNotShareAFile) {
  Process first(kGenerate + ToFile() + Arguments{"--prompts", "-"},
                {.input = "a\n", .hold_input_until_bytes = kHoldInput});
  ASSERT_TRUE(first.TalkUntil([&] { return FileBytes(out_) > 0; }));
  const std::string before = ReadFile(out_);
  for (const char* mode : {"--resume", "--force"}) {
    ExpectOneMessage(RunOctavo(kSix + ToFile() + Arguments{mode}), 1, "out' is being written by another octavo");
  }
  EXPECT_EQ(ReadFile(out_), before);
  first.Send("b\n");
  first.EndInput();
  EXPECT_EQ(first.Wait().exit_code, 0);
  EXPECT_EQ(Lines(ReadFile(out_)).size(), 2u);
  RunWell(kSix + ToFile() + Arguments{"--force"});
}

// ---- at once ----

// Sends a line, waits for its record, ten times; the pauses in milliseconds, smallest first.
std::vector<double> Pauses(const Arguments& arguments, const std::function<size_t(const Process&)>& num_records) {
  Process process(arguments, {.hold_input_until_bytes = kHoldInput});
  std::vector<double> pauses;
  for (size_t i = 1; i <= 10; ++i) {
    const Clock::time_point begin = Clock::now();
    process.Send("ab\n");
    EXPECT_TRUE(process.TalkUntil([&] { return num_records(process) == i; })) << "record " << i;
    pauses.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  process.EndInput();
  EXPECT_EQ(process.Wait().exit_code, 0);
  std::sort(pauses.begin(), pauses.end());
  return pauses;
}

size_t CountLines(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

// While the input stays open. The first record waits for the start of the program, and the machine may be busy: two of ten may be late.
TEST_F(OutputTest, RecordsLeaveAtOnce) {
  const auto to_pipe = [](const Process& process) { return CountLines(process.so_far().out); };
  const auto to_file = [&](const Process&) { return CountLines(ReadFile(out_)); };
  for (const std::string format : {"lines", "jsonl"}) {
    EXPECT_LT(Pauses(kGenerate + Arguments{"--prompts", "-", "--format", format}, to_pipe)[7], 100);
  }
  EXPECT_LT(Pauses(kGenerate + ToFile() + Arguments{"--prompts", "-"}, to_file)[7], 100);
  EXPECT_LT(Pauses({"score", "-", "--model", Golden("modd"), "--quiet"}, to_pipe)[7], 100);
}

#ifndef OCTAVO_TEST_SANITIZED  // which makes the computing take as long
// Who sends a line and waits for its record is not made to wait 5 ms for company that does not come. On a busy machine one of ten gets through.
TEST_F(OutputTest, LastRecordsDoNotWaitForOthers) {
  const auto to_pipe = [](const Process& process) { return CountLines(process.so_far().out); };
  EXPECT_LT(Pauses(kGenerate + Arguments{"--prompts", "-", "--format", "lines"}, to_pipe)[0], 4);
  EXPECT_LT(Pauses({"score", "-", "--model", Golden("modd"), "--quiet"}, to_pipe)[0], 4);
}
#endif

// ---- outputs that fail while the input is open and silent ----

const std::vector<Arguments> kReaders = {kGenerate + Arguments{"--prompts", "-"},
                                         kGenerate + Arguments{"--prompts", "-", "--format", "lines"},
                                         kGenerate + Arguments{"--prompts", "-", "--format", "jsonl"},
                                         {"score", "-", "--model", Golden("modd"), "--quiet"}};

TEST_F(OutputTest, FullDiskEndsARunThatWaits) {
  for (const Arguments& arguments : kReaders) {
    SCOPED_TRACE(Show(arguments));
    ExpectOneMessage(
        RunOctavo(arguments, {.input = "ab\n", .hold_input_until_bytes = kHoldInput, .output_path = "/dev/full"}), 1,
        "cannot write to standard output: No space left on device");
  }
  ExpectOneMessage(RunOctavo(kReaders[1] + Arguments{"--output", "/dev/full"},
                             {.input = "ab\n", .hold_input_until_bytes = kHoldInput}),
                   1, "cannot write to '/dev/full': No space left on device");
}

TEST_F(OutputTest, ClosedPipeEndsARunThatWaits) {
  for (const Arguments& arguments : kReaders) {
    for (const bool ignore : {false, true}) {
      SCOPED_TRACE(Show(arguments));
      const RunResult result = RunOctavo(arguments, {.input = "ab\n",
                                                     .hold_input_until_bytes = kHoldInput,
                                                     .close_output_after_bytes = 0,
                                                     .ignore_closed_pipes = ignore});
      EXPECT_FALSE(result.timed_out);
      EXPECT_EQ(result.exit_code, 128 + SIGPIPE);
      EXPECT_EQ(result.err, "");
    }
  }
}

// ---- files that cannot grow ----

const Arguments kLong = kGenerate + Arguments{"--samples", "2000", "--format", "lines"};  // more than 24 KB

// Runs out of space, then goes on where there is some.
void ExpectBrokenThenWhole(const Arguments& arguments, const std::string& out, const RunResult& broken,
                           std::string_view reason, const std::function<void()>& make_space) {
  const std::string whole = RunWell(kLong).out;
  ExpectOneMessage(broken, 1, reason);
  const std::string part = ReadFile(out);
  EXPECT_TRUE(!part.empty() && part.size() < whole.size() && whole.starts_with(part)) << part.size();
  make_space();
  RunWell(arguments + Arguments{"--resume"});
  EXPECT_EQ(ReadFile(out), whole);
}

TEST_F(OutputTest, LargestFileIsReached) {
  const Arguments arguments = kLong + Arguments{"--output", out_};
  const RunResult broken = RunOctavo(arguments, {.largest_file_bytes = 10'001});
  EXPECT_EQ(FileBytes(out_), 10'001u);
  ExpectBrokenThenWhole(arguments, out_, broken, "out': File too large", [] {});
}

// A file system of 16 KB; where this user may not mount one, the test is skipped.
class TinyDiskTest : public OutputTest {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(disk_);
    is_mounted_ = mount("octavo_test", disk_.c_str(), "tmpfs", 0, "size=16k") == 0;
    if (is_mounted_) return;
    ASSERT_FALSE(std::getenv("OCTAVO_TEST_NO_SKIP")) << "this user may not mount a file system";
    GTEST_SKIP() << "this user may not mount a file system";
  }
  void TearDown() override {
    if (is_mounted_) {
      EXPECT_EQ(umount(disk_.c_str()), 0);
    }
  }

  const std::string disk_ = Path("disk"), file_ = disk_ + "/out";
  const Arguments arguments_ = kLong + Arguments{"--output", file_};
  bool is_mounted_ = false;
};

TEST_F(TinyDiskTest, IsFilled) {
  ExpectBrokenThenWhole(arguments_, file_, RunOctavo(arguments_), "disk/out': No space left on device",
                        [&] { EXPECT_EQ(mount("octavo_test", disk_.c_str(), "tmpfs", MS_REMOUNT, "size=1m"), 0); });
}

// No room even for FILE.run: nothing is written that could not be resumed.
TEST_F(TinyDiskTest, IsFullBefore) {
  const std::string filler = disk_ + "/filler";
  WriteFile(filler, std::string(16 << 10, 'x'));
  ASSERT_EQ(FileBytes(filler), 16u << 10);
  ExpectOneMessage(RunOctavo(arguments_), 1, "disk/out.run': No space left on device");
  EXPECT_EQ(FileBytes(file_), 0u);
  std::filesystem::remove(filler);
  EXPECT_EQ(mount("octavo_test", disk_.c_str(), "tmpfs", MS_REMOUNT, "size=1m"), 0);
  RunWell(arguments_ + Arguments{"--resume"});
  EXPECT_EQ(ReadFile(file_), RunWell(kLong).out);
}

}  // namespace
}  // namespace octavo::test
