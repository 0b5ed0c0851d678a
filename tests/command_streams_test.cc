// Standard streams as shells and supervisors hand them over: closed ones, outputs that do not block, and the name - for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "tests/testing/command_checks.h"
#include "tests/testing/files.h"

namespace octavo::test {
namespace {

const Arguments kThree = {"generate", "--seed", "1", "--samples", "3", "--max-chars", "20"};
const Arguments kLines = kThree + Arguments{"--format", "lines"};

class StreamsTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string out_ = (folder_.path() / "out").string();
};

// ---- closed descriptors ----

// All that a run says would go into the first file that it opens.
TEST_F(StreamsTest, MessagesDoNotGoIntoFiles) {
  const std::string whole = RunWell(kLines + Arguments{"--quiet"}).out;
  for (const std::vector<int>& closed : std::vector<std::vector<int>>{{2}, {0}, {1}, {0, 1}, {1, 2}, {0, 1, 2}}) {
    SCOPED_TRACE(::testing::PrintToString(closed));
    const RunOptions options = {.closed = closed};
    const Arguments to_file = kLines + Arguments{"--output", out_};
    RunWell(to_file + Arguments{"--force"}, options);
    EXPECT_EQ(ReadFile(out_), whole);
    WriteFile(out_, whole.substr(0, whole.find('\n') + 5));
    RunWell(to_file + Arguments{"--resume"}, options);
    EXPECT_EQ(ReadFile(out_), whole) << "nor when it goes on";
    const std::string page = (folder_.path() / "page.html").string();
    RunWell({"attend", "ab", "--html", page, "--force"}, options);
    EXPECT_EQ(ReadFile(page).find("octavo: "), std::string::npos);
  }
}

TEST_F(StreamsTest, ClosedOutputIsAnError) {
  for (const Arguments& arguments : std::vector<Arguments>{kThree,
                                                           kLines,
                                                           {"generate", "--seed", "1", "--max-chars", "3"},
                                                           {"attend", "ab"},
                                                           {"attend", "ab", "--html", "-"},
                                                           {"info"},
                                                           {"check", "--cases", "1"},
                                                           {"score", folder_.Write("texts", "to be\n"), "--quiet"},
                                                           {"--help"},
                                                           {"--version"}}) {
    SCOPED_TRACE(Show(arguments));
    const bool quiet = std::find(arguments.begin(), arguments.end(), "--seed") != arguments.end();
    ExpectOneMessage(RunOctavo(quiet ? arguments + Arguments{"--quiet"} : arguments, {.closed = {1}}), 1,
                     "cannot write to standard output: it is closed");
  }
  // By another name, it is not /dev/null either, which would take everything.
  const RunResult named = RunOctavo(kLines + Arguments{"--output", "/dev/stdout", "--quiet"}, {.closed = {1}});
  EXPECT_EQ(named.exit_code, 1);
  EXPECT_NE(named.err.find("/dev/stdout"), std::string::npos) << named.err;
}

TEST_F(StreamsTest, ClosedInputIsEmpty) {
  const RunOptions options = {.closed = {0}, .timeout = std::chrono::seconds(20)};
  EXPECT_EQ(RunWell({"score", "-"}, options).out, "");
  EXPECT_EQ(RunWell({"generate", "--prompts", "-", "--format", "lines"}, options).out, "");
}

// ---- outputs that do not block ----

TEST_F(StreamsTest, OutputsThatDoNotBlockGetEveryByte) {
  const std::string text = "To be, or not to be, that is the question:";
  for (const Arguments& arguments : std::vector<Arguments>{
           {"attend", text, "--format", "json", "--model", "small"},
           {"attend", text, "--html", "-"},
           {"generate", "--seed", "1", "--samples", "20000", "--max-chars", "10", "--quiet"},
           {"generate", "--seed", "1", "--samples", "2000", "--max-chars", "10", "--format", "jsonl", "--quiet"}}) {
    SCOPED_TRACE(Show(arguments));
    const std::string whole = RunWell(arguments).out;
    EXPECT_GT(whole.size(), size_t{1} << 16) << "more than a pipe holds";
    const RunResult result = RunWell(arguments, {.non_blocking_output = true});
    EXPECT_TRUE(result.out == whole) << result.out.size() << " of " << whole.size() << " bytes; " << result.err;
  }
}

// ---- the name - ----

TEST_F(StreamsTest, DashIsStandardOutput) {
  for (const std::string format : {"text", "lines", "jsonl"}) {
    const Arguments arguments = kThree + Arguments{"--format", format, "--quiet"};
    const std::string whole = RunWell(arguments).out;
    EXPECT_EQ(RunWell(arguments + Arguments{"--output", "-"}).out, whole);
    EXPECT_EQ(RunWell(arguments + Arguments{"--output", "-", "--force"}).out, whole) << "nothing is overwritten";
    ExpectOneMessage(RunOctavo(arguments + Arguments{"--output", "-", "--resume"}), 2,
                     "--resume: standard output cannot be resumed");
  }
  EXPECT_FALSE(std::filesystem::exists("-")) << "and no file of that name";
  EXPECT_FALSE(std::filesystem::exists("-.run"));
}

TEST_F(StreamsTest, DashIsStandardOutputForPagesToo) {
  RunWell({"attend", "ab", "--html", out_, "--quiet"});
  for (const Arguments& more : {Arguments{}, Arguments{"--force"}}) {
    const RunResult result = RunWell(Arguments{"attend", "ab", "--html", "-"} + more);
    EXPECT_EQ(result.out, ReadFile(out_));
    EXPECT_EQ(result.err, "") << "no file was written";
  }
  EXPECT_FALSE(std::filesystem::exists("-"));
}

}  // namespace
}  // namespace octavo::test
