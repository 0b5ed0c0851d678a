// octavo check on the command line: what it prints, on which targets it runs, what ends it. That it can fail: tests/faults/.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "kernels/targets.h"
#include "tests/testing/command_checks.h"

namespace octavo::test {
namespace {

constexpr size_t kNumKernels = 11;  // with whole models and the promise

const Arguments kCheck = {"check", "--model", Golden("m8.safetensors"), "--cases", "1"};
const Arguments kJson = kCheck + Arguments{"--format", "json"};

RunOptions Variable(const std::string& value) { return {.environment = {"OCTAVO_TARGET=" + value}}; }

// The rows of a run that must pass.
std::vector<Json> Rows(const Arguments& flags, const std::string& variable = "") {
  return Json::parse(RunWell(kJson + flags, Variable(variable)).out).at("rows").get<std::vector<Json>>();
}

// The targets of those, best first; expects every kernel once on each.
std::vector<std::string> TargetsOf(const std::vector<Json>& rows) {
  std::set<std::string> seen;
  for (const Json& row : rows) seen.insert(row.at("target").get<std::string>());
  EXPECT_EQ(rows.size(), kNumKernels * seen.size());
  std::vector<std::string> targets;
  for (const std::string& target : RunnableTargets()) {
    if (seen.erase(target)) targets.push_back(target);
  }
  EXPECT_TRUE(seen.empty()) << *seen.begin();
  return targets;
}

TEST(Check, PassesHereOnEveryTarget) {
  const RunResult result = RunWell(kCheck, Variable(""));
  EXPECT_EQ(result.err, fmt::format("octavo: all is well: {} checks passed\n", kNumKernels * RunnableTargets().size()));
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 1 + kNumKernels * RunnableTargets().size());
  EXPECT_EQ(lines[0], "kernel            target    cases   error/bound  verdict");
  for (size_t i = 1; i < lines.size(); ++i) EXPECT_TRUE(lines[i].ends_with("  ok")) << lines[i];
}

TEST(Check, JsonHasItsKeysInOrder) {
  const Json whole = Json::parse(RunWell(kJson + Arguments{"--cases", "2"}, Variable("")).out);
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole.begin().key(), "passed");
  EXPECT_EQ(whole.at("passed"), true);
  EXPECT_EQ(TargetsOf(whole.at("rows").get<std::vector<Json>>()), RunnableTargets());
  for (const Json& row : whole.at("rows")) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : row.items()) keys.push_back(key);
    EXPECT_EQ(keys, (std::vector<std::string>{"kernel", "target", "cases", "worst_share_of_bound", "same_bits",
                                              "passed", "failure"}));
    EXPECT_EQ(row.at("cases"), row.at("kernel") == "promise" ? 11 : 2);
    EXPECT_TRUE(row.at("worst_share_of_bound").get<double>() <= 1) << row;
    EXPECT_EQ(row.at("same_bits"), true);
    EXPECT_EQ(row.at("passed"), true);
    EXPECT_EQ(row.at("failure"), nullptr);
  }
}

TEST(Check, RunsTheTargetsAskedForOnce) {
  const std::string best = RunnableTargets().front(), last = RunnableTargets().back();
  EXPECT_EQ(TargetsOf(Rows({"--target", last})), std::vector{last});
  EXPECT_EQ(TargetsOf(Rows({"--target", last, "--target", best, "--target=" + last})).size(), best == last ? 1u : 2u);
  if (best == "AVX3") {
    EXPECT_EQ(TargetsOf(Rows({"--target", "avx512", "--target", "AVX3"})), std::vector{best});
  }
}

TEST(Check, TheVariableNamesTheTargetWhereNoFlagDoes) {
  const std::string best = RunnableTargets().front(), last = RunnableTargets().back();
  EXPECT_EQ(TargetsOf(Rows({}, last)), std::vector{last});
  EXPECT_EQ(TargetsOf(Rows({"--target", best}, last)), std::vector{best});
  EXPECT_EQ(TargetsOf(Rows({"--target", best}, "foo")), std::vector{best});
}

// Nothing on standard output, not even the head of the table.
TEST(Check, ATargetThatIsNotThereEndsItBeforeItBegins) {
  ExpectOneMessage(RunOctavo(kCheck + Arguments{"--target", "foo"}), 2, "--target: target 'foo'");
  const Arguments second = {"--target", RunnableTargets().front(), "--target", "foo"};
  ExpectOneMessage(RunOctavo(kCheck + second), 2, "--target: target 'foo'");
  ExpectOneMessage(RunOctavo(kCheck, Variable("foo")), 2, "octavo: OCTAVO_TARGET: target 'foo'");
}

// The last row of each target, and nothing on the command line changes it.
TEST(Check, ThePromiseClosesTheTable) {
  const std::vector<std::string> targets = RunnableTargets();
  const auto last = [&](const std::vector<Json>& rows) {
    return std::vector<Json>(rows.end() - static_cast<std::ptrdiff_t>(targets.size()), rows.end());
  };
  const std::vector<Json> rows = last(Rows({}));
  for (size_t i = 0; i < targets.size(); ++i) {
    EXPECT_EQ(rows[i].at("kernel"), "promise");
    EXPECT_EQ(rows[i].at("target"), targets[i]);
  }
  EXPECT_EQ(last(Rows({"--cases", "2", "--seed", "9", "--model", "tiny"})), rows);
}

TEST(Check, QuietTakesNothingFromTheResult) {
  const RunResult loud = RunWell(kCheck, Variable("")), quiet = RunWell(kCheck + Arguments{"--quiet"}, Variable(""));
  EXPECT_EQ(quiet.out, loud.out);
  EXPECT_EQ(quiet.err, "");
}

TEST(Check, TheSeedChoosesTheCases) {
  const std::vector<Json> first = Rows({"--seed", "5"}), again = Rows({"--seed", "5"}), other = Rows({"--seed", "6"});
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

}  // namespace
}  // namespace octavo::test
