// The line on standard error that says how far a run is: what it says, when it shows, that it goes.
#include "tools/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <regex>

#include "tests/testing/command_checks.h"

namespace octavo::test {
namespace {

TEST(ProgressLine, SaysShareCountRateAndTimeLeft) {
  EXPECT_EQ(tools::ProgressLine("texts", 1200, 38'000'000, 0.5, 0, 20),
            "[##########          ]  50%  1200 texts, 1.90 M characters/s, 0:20 left");
  EXPECT_EQ(tools::ProgressLine("texts", 1, 30, 0.0, 0, 2), "[                    ]   0%  1 texts, 15 characters/s");
  EXPECT_EQ(tools::ProgressLine("texts", 7, 100'000, 1.0, 0, 4),
            "[####################] 100%  7 texts, 25 k characters/s, 0:00 left");
  // A file that grew since.
  EXPECT_EQ(tools::ProgressLine("texts", 7, 8, 1.5, 0, 4),
            "[####################] 100%  7 texts, 2 characters/s, 0:00 left");
  EXPECT_EQ(tools::ProgressLine("texts", 7, 39'996, std::nullopt, 0, 4), "7 texts, 9999 characters/s");
}

TEST(ProgressLine, TimeLeftIsThatOfThisRun) {
  const auto left = [](double share, double skipped, double seconds) {
    const std::string line = tools::ProgressLine("texts", 1, 1, share, skipped, seconds);
    const size_t at = line.rfind(", ");
    return line.substr(at + 2);
  };
  EXPECT_EQ(left(0.25, 0, 100), "5:00 left");
  EXPECT_EQ(left(0.75, 0.5, 100), "1:40 left") << "what stood already took no time of this run";
  EXPECT_EQ(left(0.5, 0, 3599.9), "59:59 left");
  EXPECT_EQ(left(0.5, 0, 3600), "1:00:00 left");
  EXPECT_EQ(left(0.001, 0, 200), "55:30:00 left") << "199.8 times as long";
  EXPECT_EQ(left(1e-300, 0, 1), "1000000:00:00 left");
  EXPECT_EQ(left(0.5, 0.5, 1), "1 characters/s") << "unknown";
}

// A run without an end whose messages are seen in `options`' way, broken off once `done`.
std::string MessagesUntil(const Arguments& more, const RunOptions& options,
                          const std::function<bool(const RunResult&)>& done) {
  const Arguments endless = {"generate", "--seed", "1", "--max-chars", "64", "--format", "lines"};
  Process process(endless + more, options);
  EXPECT_TRUE(process.TalkUntil([&] { return done(process.so_far()); })) << process.so_far().err;
  process.Signal(SIGTERM);
  const RunResult result = process.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  return result.err;
}

const std::string kClear = "\r\x1b[K";

bool ShowsThreeTimes(const RunResult& result) {
  size_t count = 0;
  for (size_t at = 0; (at = result.err.find(kClear, at)) != std::string::npos; ++at) ++count;
  return count >= 3;
}

TEST(Progress, ShowsOnATerminalAndGoes) {
  const TemporaryFolder folder;
  const std::string prompts = folder.Write("prompts.txt", "ROMEO:\nJULIET:\n"), out = (folder.path() / "out").string();
  const std::regex with_bar(R"(\[#* *\] +\d+%  \d+ completions, [\d.]+ ([Mk] )?characters/s, (\d+:)?\d+:\d\d left)"),
      without_bar(R"(\d+ completions, [\d.]+ ([Mk] )?characters/s)");
  const std::vector<Arguments> cases = {
      {"--samples", "100000000"},                                     // prompts of flags
      {"--prompts", prompts, "--samples", "100000000"},               // a file
      {"--samples", "100000000", "--output", out},                    // to a file
      {"--prompts", "-", "--samples", "100000000", "--threads", "1"}  // a pipe, whose end nobody knows
  };
  for (const Arguments& more : cases) {
    SCOPED_TRACE(Show(more));
    const std::string messages = MessagesUntil(more, {.input = "ROMEO:\n", .terminal_messages = true}, ShowsThreeTimes);
    const std::string before = messages.substr(0, messages.find(kClear));
    EXPECT_EQ(before, "");
    std::vector<std::string> lines;
    for (size_t at = 0, end; at < messages.size(); at = end) {
      at += messages.compare(at, kClear.size(), kClear) == 0 ? kClear.size() : 0;
      end = std::min(messages.find(kClear, at), messages.size());
      lines.push_back(messages.substr(at, end - at));
    }
    ASSERT_GE(lines.size(), 3u);
    // The last one is what stays: the closing line.
    EXPECT_TRUE(lines.back().starts_with("octavo: ") && lines.back().ends_with('\n')) << lines.back();
    lines.pop_back();
    // That it was asked to stop is a line of its own, too.
    EXPECT_EQ(std::erase_if(lines, [](const std::string& line) { return line.starts_with("octavo: stopping; "); }), 1u);
    for (const std::string& line : lines) {
      EXPECT_TRUE(std::regex_match(line, more[1] == "-" ? without_bar : with_bar)) << line;
      EXPECT_EQ(line.find("100%"), std::string::npos) << "far from done";
    }
  }
}

TEST(Progress, ShowsForScore) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "To be, or not to be, that is the question:\n";
  const TemporaryFolder folder;
  Process process({"score", folder.Write("text.txt", text), "--threads", "1"}, {.terminal_messages = true});
  EXPECT_TRUE(process.TalkUntil([&] { return ShowsThreeTimes(process.so_far()); })) << process.so_far().err;
  process.Signal(SIGINT);
  EXPECT_TRUE(std::regex_search(process.Wait().err, std::regex(R"(\[#* *\] +\d+%  \d+ texts, )")));
}

TEST(Progress, IsNotShownWhereNobodyWatches) {
  const Arguments many = {"--samples", "100000000"};
  for (const auto& [more, options] :
       std::vector<std::pair<Arguments, RunOptions>>{{many + Arguments{"--quiet"}, {.terminal_messages = true}},
                                                     {many, {}},
                                                     {many, {.terminal = true, .terminal_messages = true}}}) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string messages = MessagesUntil(more, options, [&](const RunResult&) {
      return std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(1500);
    });
    EXPECT_EQ(messages.find(kClear), std::string::npos) << messages;
    EXPECT_EQ(messages.find("characters/s"), std::string::npos) << messages;
  }
}

// Messages stand on lines of their own.
TEST(Progress, MakesWayForMessages) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 200'000; ++i) lines += i % 100 == 99 ? "%\n" : "ROMEO:\n";
  const std::string prompts = folder.Write("prompts.txt", lines);
  const std::string messages =
      MessagesUntil({"--prompts", prompts}, {.terminal_messages = true}, [](const RunResult& result) {
        const size_t shown = result.err.find("characters/s");
        return shown != std::string::npos && result.err.find("octavo: ", shown) != std::string::npos;
      });
  EXPECT_TRUE(std::regex_search(messages, std::regex("left\r\x1b\\[Koctavo: .* line [0-9]+: "))) << messages;
  EXPECT_FALSE(std::regex_search(messages, std::regex("leftoctavo: ")));
}

}  // namespace
}  // namespace octavo::test
