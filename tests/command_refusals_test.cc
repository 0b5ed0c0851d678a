// What the system refuses: threads that cannot be started are done without, memory that runs out is one line and exit
// code 1. A preloaded library (tests/preload) makes the n-th call fail, for every n that a run comes to, or for some of
// them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "tests/testing/command_checks.h"
#include "tests/testing/files.h"

namespace octavo::test {
namespace {

using RunOptions = test::RunOptions;

// Runs with one thing that fails.
class RefusalTest : public ::testing::Test {
 protected:
  struct Counts {
    unsigned long long threads = 0, mallocs = 0;
  };

  RefusalTest() {
    std::string lines, objects;
    for (int i = 0; i < 60; ++i) {
      lines += std::string("To be, or not to be: that is the question").substr(0, static_cast<size_t>(i % 40)) + "\n";
    }
    for (int i = 0; i < 12; ++i) {
      objects += R"({"prompt": "A", "text": "ROMEO", "id": )" + std::to_string(i) +
                 R"(, "stop": ["\n", "q"], "max_chars": 8})" + "\n";
    }
    lines_ = folder_.Write("lines.txt", lines);
    objects_ = folder_.Write("objects.jsonl", objects + "[{}, [[1]]]\n{\"prompt\": 3}\n");
  }

  RunResult Run(const Arguments& arguments, const std::vector<std::string>& failing) const {
    std::remove(Out().c_str());
    std::remove((Out() + ".run").c_str());
    RunOptions options;
    options.environment = failing;
    options.environment.push_back("LD_PRELOAD=" OCTAVO_FAILING);
    return RunOctavo(arguments, options);
  }

  Counts Count(const Arguments& arguments) const {
    const std::string path = folder_.path().string() + "/count";
    Run(arguments, {"OCTAVO_FAIL_COUNT=" + path});
    Counts counts;
    EXPECT_EQ(std::sscanf(ReadFile(path).c_str(), "threads %llu mallocs %llu", &counts.threads, &counts.mallocs), 2);
    return counts;
  }

  std::string Out() const { return folder_.path().string() + "/out"; }

  const TemporaryFolder folder_;
  std::string lines_, objects_;
};

using ThreadsTest = RefusalTest;

TEST_F(ThreadsTest, ThatCannotBeStartedAreDoneWithout) {
  const Arguments generate = {"generate", "--prompts", lines_, "--max-chars", "20", "--seed", "1"};
  const std::vector<Arguments> commands = {
      generate + Arguments{"--format", "lines", "--threads", "1"},
      generate + Arguments{"--format", "jsonl", "--threads", "2"},
      generate + Arguments{"--format", "lines", "--threads", "7", "--output", Out()},
      generate + Arguments{"--format", "text", "--threads", "16"},
      {"generate", "--model", "small", "--prompt", "ROMEO:", "--max-chars", "10", "--seed", "1", "--threads", "4"},
      {"score", lines_, "--threads", "3"},
      {"score", "--model", "small", "--document", lines_, "--threads", "5"},
      {"attend", "--model", "small", "ROMEO", "--format", "json", "--threads", "3"},
  };
  for (const Arguments& arguments : commands) {
    SCOPED_TRACE(Show(arguments));
    const RunResult expected = Run(arguments, {});
    EXPECT_EQ(expected.exit_code, 0) << expected.err;
    const std::string expected_file = ReadFile(Out());
    const unsigned long long count = Count(arguments).threads;
    EXPECT_GE(count, arguments[0] == "attend" ? 0 : 1);
    for (unsigned long long n = 1; n <= count; ++n) {
      for (const std::string after : {"", "+"}) {
        SCOPED_TRACE("thread " + std::to_string(n) + after);
        const RunResult result = Run(arguments, {"OCTAVO_FAIL_THREAD=" + std::to_string(n) + after});
        EXPECT_EQ(result.exit_code, 0) << result.err;
        EXPECT_EQ(result.out, expected.out);
        EXPECT_EQ(ReadFile(Out()), expected_file);
      }
    }
  }
}

TEST_F(ThreadsTest, AreSaidToBeFewer) {
  const Arguments arguments = {"generate", "--prompts", lines_,  "--max-chars", "9", "--seed",
                               "1",        "--format",  "lines", "--threads",   "7"};
  const auto run = [&](const std::string& failing, const Arguments& more = {}) {
    return Run(arguments + more, {"OCTAVO_FAIL_THREAD=" + failing}).err;
  };
  // The output's, the input's, and six that compute beside the first.
  const std::string three = run("5+");
  EXPECT_NE(three.find("octavo: only 3 of 7 threads could be started; "), std::string::npos) << three;
  EXPECT_NE(three.find(", 3 threads, "), std::string::npos) << three;
  const std::string one = run("2+");
  EXPECT_NE(one.find("octavo: no thread could be started beside the first; "), std::string::npos) << one;
  EXPECT_NE(one.find(", 1 thread, "), std::string::npos) << one;
  for (const std::string& text : {three, one}) EXPECT_EQ(Lines(text).size(), 2u) << text;
  EXPECT_EQ(run("5+", {"--quiet"}), "");
  EXPECT_EQ(Lines(run("9")).size(), 1u) << "all that are wanted";
}

using MemoryTest = RefusalTest;

// Every so many-th allocation, it alone or with all that come after it.
TEST_F(MemoryTest, ThatRunsOutIsOneLine) {
  const std::vector<Arguments> commands = {
      {"info"},
      {"generate", "--prompts", objects_, "--format", "jsonl", "--seed", "1", "--threads", "2", "--quiet"},
      {"generate", "--prompts", lines_, "--format", "lines", "--seed", "1", "--max-chars", "9", "--output", Out(),
       "--threads", "3", "--quiet"},
      {"score", objects_, "--threads", "2", "--quiet"},
      {"attend", "ROMEO", "--format", "json"},
  };
  constexpr int kRuns = 60;
  for (const Arguments& arguments : commands) {
    SCOPED_TRACE(Show(arguments));
    const RunResult expected = Run(arguments, {});
    const std::string expected_file = ReadFile(Out());
    const unsigned long long count = Count(arguments).mallocs;
    ASSERT_GT(count, 1000u);
    int failed = 0;
    for (int i = 0; i < kRuns; ++i) {
      const unsigned long long n = 1 + count * static_cast<unsigned long long>(i) / kRuns;
      for (const std::string after : {"", "+"}) {
        SCOPED_TRACE("allocation " + std::to_string(n) + after);
        const RunResult result = Run(arguments, {"OCTAVO_FAIL_MALLOC=" + std::to_string(n) + after});
        ASSERT_FALSE(result.timed_out);
        ASSERT_LE(result.exit_code, 1) << result.err;
        if (result.err == expected.err && result.exit_code == expected.exit_code) {
          // It could be done without.
          EXPECT_EQ(result.out, expected.out);
          continue;
        }
        ++failed;
        EXPECT_EQ(result.exit_code, 1);
        EXPECT_TRUE(expected.out.starts_with(result.out));
        EXPECT_TRUE(expected_file.starts_with(ReadFile(Out())));
        const std::vector<std::string> lines = Lines(result.err);
        ASSERT_FALSE(lines.empty());
        EXPECT_TRUE(lines.back().starts_with("octavo: ")) << result.err;
        EXPECT_TRUE(lines.back().find("memory") != std::string::npos) << result.err;
      }
    }
    EXPECT_GT(failed, kRuns);
  }
}

}  // namespace
}  // namespace octavo::test
