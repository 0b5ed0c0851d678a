// What of a run is on the disk, and what is left when the disk fails at any call: files are synced, records are replaced whole, a failing sync is an
// error, and a run that was broken at any of its calls can be resumed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>

#include "tests/testing/command_checks.h"
#include "tests/testing/files.h"

namespace octavo::test {
namespace {

const Arguments kGenerate = {"generate",    "--model", Golden("modd"), "--seed",   "1",
                             "--max-chars", "12",      "--quiet",      "--format", "lines"};
const Arguments kSix = kGenerate + Arguments{"--prompt", "ab", "--prompt", "", "--samples", "3"};

class DurabilityTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }

  // With the library that logs calls about files, of which those named in `faults` fail; see preload/file_faults.cc.
  RunOptions Watched(const std::string& faults = "") const {
    std::filesystem::remove(log_);
    return {.environment = {"LD_PRELOAD=" OCTAVO_FILE_FAULTS_LIBRARY, "OCTAVO_FILE_FAULTS=" + faults,
                            "OCTAVO_FILE_LOG=" + log_}};
  }
  std::vector<std::string> Calls() const { return Lines(ReadFile(log_)); }
  bool Called(const std::string& call) const {
    const std::vector<std::string> calls = Calls();
    return std::count(calls.begin(), calls.end(), call) > 0;
  }
  // How often each function was called.
  std::map<std::string, int> Counts() const {
    std::map<std::string, int> counts;
    for (const std::string& call : Calls()) ++counts[call.substr(0, call.find(' '))];
    return counts;
  }
  size_t NumFiles() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }

  const TemporaryFolder folder_, log_folder_;
  const std::string out_ = Path("out"), log_ = (log_folder_.path() / "log").string();
  const Arguments to_file_ = kSix + Arguments{"--output", out_};
  const std::string whole_ = RunWell(kSix).out;
};

std::string Fault(const std::string& call, int number, int error) {
  return call + ":" + std::to_string(number) + ":" + std::to_string(error);
}

TEST_F(DurabilityTest, DataIsSyncedBeforeTheRecordThatTellsOfIt) {
  RunWell(to_file_, Watched());
  EXPECT_EQ(ReadFile(out_), whole_);
  const std::vector<std::string> calls = Calls();
  const auto place = [&](const std::string& call) {
    const auto found = std::find(calls.rbegin(), calls.rend(), call);
    EXPECT_TRUE(found != calls.rend()) << call;
    return calls.rend() - found;
  };
  const auto data = place("fdatasync " + out_), record = place("rename " + out_ + ".run");
  const auto folder = place("fsync " + folder_.path().string());
  EXPECT_LT(place("write " + out_), data);
  EXPECT_LT(data, record);
  EXPECT_LT(record, folder);
  // The record was written under another name and synced in between.
  EXPECT_TRUE(std::any_of(calls.begin() + data, calls.begin() + record, [&](const std::string& call) {
    return call.starts_with("fsync " + out_ + ".run.");
  })) << ReadFile(log_);
  EXPECT_EQ(NumFiles(), 2u);
  const Json marks = Json::parse(ReadFile(out_ + ".run")).at("written");
  EXPECT_EQ(marks.size(), 6u);
  EXPECT_EQ(marks.back()[0], whole_.size());
}

TEST_F(DurabilityTest, LongRunsAreSyncedEveryFewSeconds) {
  Process process(kGenerate + Arguments{"--prompts", "-", "--output", out_}, [&] {
    RunOptions options = Watched();
    options.input = "ab\nb\n";
    options.hold_input_until_bytes = kHoldInput;
    return options;
  }());
  EXPECT_TRUE(process.TalkUntil([&] { return Called("fdatasync " + out_); })) << "while the input stays open";
  EXPECT_TRUE(process.TalkUntil([&] { return Json::parse(ReadFile(out_ + ".run")).at("written").size() == 2; }))
      << "and the record knows";
  process.Signal(SIGKILL);
  process.Wait();
}

TEST_F(DurabilityTest, FailingSyncIsAnError) {
  for (const std::string call : {"fdatasync", "fsync"}) {
    for (int number = 1;; ++number) {
      SCOPED_TRACE(call + " " + std::to_string(number));
      std::filesystem::remove(out_);
      std::filesystem::remove(out_ + ".run");
      const RunResult result = RunOctavo(to_file_, Watched(Fault(call, number, EIO)));
      if (result.exit_code == 0) {  // not called so often
        EXPECT_GE(number, call == "fsync" ? 5 : 2);
        break;
      }
      ExpectOneMessage(result, 1, "Input/output error");
      EXPECT_NE(result.err.find("cannot sync '"), std::string::npos) << result.err;
      RunWell(to_file_ + Arguments{"--resume"});
      EXPECT_EQ(ReadFile(out_), whole_);
    }
  }
}

TEST_F(DurabilityTest, FailingSyncEndsARunThatWaits) {
  RunOptions options = Watched(Fault("fdatasync", 1, EIO));
  options.input = "ab\n";
  options.hold_input_until_bytes = kHoldInput;
  ExpectOneMessage(RunOctavo(kGenerate + Arguments{"--prompts", "-", "--output", out_}, options), 1,
                   "cannot sync '" + out_ + "': Input/output error");
}

TEST_F(DurabilityTest, WhatCannotBeSyncedIsNoError) {
  for (const int error : {EINVAL, EROFS}) {
    RunWell(to_file_ + Arguments{"--force"},
            Watched("fsync:1+:" + std::to_string(error) + " fdatasync:1+:" + std::to_string(error)));
    EXPECT_EQ(ReadFile(out_), whole_);
  }
  RunWell(kSix + Arguments{"--output", "/dev/null"}, Watched("fdatasync:1+:5 fsync:1+:5"));
  EXPECT_EQ(Counts()["fdatasync"], 0);
}

// Each call in turn fails, or is never reached: the run can be resumed, or begins anew where nothing was begun; nothing else is left.
TEST_F(DurabilityTest, BrokenAtAnyCallThenResumed) {
  RunWell(to_file_, Watched());
  const std::map<std::string, int> counts = Counts();
  for (const char* call : {"open", "write", "ftruncate", "fsync", "fdatasync", "rename"}) {
    ASSERT_TRUE(counts.contains(call)) << call;
    for (int number = 1; number <= counts.at(call); ++number) {
      for (const std::string what : {"28", "5", "kill"}) {
        const std::string fault = call + (":" + std::to_string(number)) + ":" + what;
        SCOPED_TRACE(fault);
        std::filesystem::remove(out_);
        std::filesystem::remove(out_ + ".run");
        const RunResult result = RunOctavo(to_file_, Watched(fault));
        if (call == std::string("write") && Counts()[call] < number) {  // records went together in fewer writes
          EXPECT_EQ(ReadFile(out_), whole_);
          continue;
        }
        if (what == "kill") {
          EXPECT_EQ(result.exit_code, 128 + SIGKILL);
          for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
            const std::string name = entry.path().filename().string();
            if (name.starts_with("out.run.")) std::filesystem::remove(entry.path());
          }
        } else {
          ExpectOneMessage(result, 1, what == "5" ? "Input/output error" : "No space left on device");
          EXPECT_LE(NumFiles(), 2u);
        }
        RunWell(to_file_ + Arguments{"--resume"});
        EXPECT_EQ(ReadFile(out_), whole_);
      }
    }
  }
}

// --force: at any call the old file stands whole, or it counts as empty and the new run can be resumed.
TEST_F(DurabilityTest, ForcedAndBrokenAtAnyCall) {
  const Arguments other = {"generate", "--prompt", "x",        "--samples", "5",        "--max-chars", "3",
                           "--seed",   "2",        "--format", "lines",     "--output", out_,          "--quiet"};
  RunWell(other);
  const std::string old = ReadFile(out_), old_record = ReadFile(out_ + ".run");
  ASSERT_FALSE(whole_.starts_with(old));
  const Arguments forced = to_file_ + Arguments{"--force"};
  RunWell(forced, Watched());
  size_t num_kept = 0, num_begun = 0;
  for (const auto& [call, count] : Counts()) {
    for (int number = 1; number <= count; ++number) {
      for (const std::string what : {"28", "kill"}) {
        const std::string fault = call + ":" + std::to_string(number) + ":" + what;
        SCOPED_TRACE(fault);
        WriteFile(out_, old);
        WriteFile(out_ + ".run", old_record);
        RunOctavo(forced, Watched(fault));
        if (ReadFile(out_ + ".run") == old_record) {
          EXPECT_EQ(ReadFile(out_), old);
          ++num_kept;
          continue;
        }
        ++num_begun;
        RunWell(to_file_ + Arguments{"--resume"});
        EXPECT_EQ(ReadFile(out_), whole_);
      }
    }
  }
  EXPECT_GE(num_kept, 6u);
  EXPECT_GE(num_begun, 6u);
}

TEST_F(DurabilityTest, PageIsReplacedWholeOrNotAtAll) {
  const std::string page = Path("page.html"), link = Path("link.html");
  const Arguments attend = {"attend", "ab", "--model", Golden("modd"), "--quiet", "--html"};
  RunWell(attend + Arguments{page}, Watched());
  EXPECT_TRUE(Called("fsync " + page));
  const std::string good = ReadFile(page);
  std::filesystem::create_symlink("page.html", link);
  std::filesystem::permissions(page, std::filesystem::perms(0640));
  for (const std::string& target : {page, link}) {
    WriteFile(page, "old");
    for (const char* fault : {"open:1:28", "write:1:28", "fsync:1:5", "rename:1:28"}) {
      SCOPED_TRACE(target + fault);
      ExpectOneMessage(RunOctavo(attend + Arguments{target, "--force"}, Watched(fault)), 1, target);
      EXPECT_EQ(ReadFile(page), "old");
      EXPECT_EQ(NumFiles(), 2u);
    }
    RunWell(attend + Arguments{target, "--force"}, Watched());
    EXPECT_TRUE(Called("rename " + page));
    EXPECT_EQ(ReadFile(page), good);
    EXPECT_EQ(NumFiles(), 2u);
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(std::filesystem::status(page).permissions(), std::filesystem::perms(0640));
  }
  // A new page that could not be written whole is none.
  std::filesystem::remove(page);
  ExpectOneMessage(RunOctavo(attend + Arguments{page}, Watched("write:1:28")), 1,
                   "page.html': No space left on device");
  EXPECT_EQ(NumFiles(), 1u);
}

}  // namespace
}  // namespace octavo::test
