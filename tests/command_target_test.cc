// --target and OCTAVO_TARGET on the command line: names in any case, what is refused, which of the two counts.
#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "kernels/targets.h"
#include "tests/testing/command_checks.h"

namespace octavo::test {
namespace {

const std::string kM8 = Golden("m8.safetensors");

// A short run of each command.
const std::vector<Arguments> kCommands = {
    {"generate", "--model", kM8, "--max-chars", "3", "--seed", "1"},
    {"score", kM8 + ".none", "--model", kM8},
    {"info", "--model", kM8, "--format", "json"},
    {"check", "--model", kM8, "--cases", "1", "--format", "json"},
};

RunOptions Variable(const std::string& value) { return {.environment = {"OCTAVO_TARGET=" + value}}; }

// The target that octavo info says is used.
std::string Used(const Arguments& flags, const std::string& variable = "") {
  const RunResult result = RunWell(Arguments{"info", "--model", kM8, "--format", "json"} + flags, Variable(variable));
  return Json::parse(result.out).at("cpu").at("target");
}

std::string Lower(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

bool Runs(const std::string& target) {
  const std::vector<std::string> runnable = RunnableTargets();
  return std::find(runnable.begin(), runnable.end(), target) != runnable.end();
}

std::string Refusal(const std::string& name) {
  return fmt::format("target '{}' is not compiled in or does not run on this CPU; those that do: {} (see octavo", name,
                     fmt::join(RunnableTargets(), ", "));
}

TEST(Target, UnknownOnesAreRefusedWithTheListOfThoseThatAre) {
  for (const Arguments& command : kCommands) {
    for (const std::string& name : {std::string("foo"), std::string("AVX9"), " " + RunnableTargets().back()}) {
      SCOPED_TRACE(Show(command) + " " + name);
      ExpectOneMessage(RunOctavo(command + Arguments{"--target", name}, Variable("")), 2,
                       "octavo: --target: " + Refusal(name));
      ExpectOneMessage(RunOctavo(command, Variable(name)), 2, "octavo: OCTAVO_TARGET: " + Refusal(name));
    }
  }
  for (const std::string& target : CompiledTargets()) {
    if (!Runs(target)) ExpectOneMessage(RunOctavo({"info", "--target", target}), 2, Refusal(target));
  }
}

TEST(Target, IsTakenInAnyCase) {
  for (const std::string& target : RunnableTargets()) {
    std::string mixed = Lower(target);
    mixed[0] = static_cast<char>(std::toupper(mixed[0]));
    for (const std::string& name : {target, Lower(target), mixed}) {
      EXPECT_EQ(Used({"--target", name}), target);
      EXPECT_EQ(Used({}, name), target);
    }
    const Arguments generate = {"generate", "--model", kM8, "--max-chars", "3", "--target", Lower(target)};
    EXPECT_TRUE(RunWell(generate, Variable("")).err.ends_with(", target " + target + "\n"));
    EXPECT_TRUE(RunWell({"score", "-", "--model", kM8, "--target", Lower(target)}, Variable(""))
                    .err.ends_with(", target " + target + "\n"));
  }
}

TEST(Target, Avx512IsTakenForAvx3) {
  for (const char* name : {"AVX512", "avx512", "Avx512"}) {
    if (Runs("AVX3")) {
      EXPECT_EQ(Used({"--target", name}), "AVX3");
      EXPECT_EQ(Used({}, name), "AVX3");
    } else {
      ExpectOneMessage(RunOctavo({"info", "--target", name}, Variable("")), 2, Refusal(name));
    }
  }
}

TEST(Target, IsTheBestWhenNobodySays) {
  EXPECT_EQ(Used({}), RunnableTargets().front());
  EXPECT_EQ(Used({"--target", ""}), RunnableTargets().front());
}

TEST(Target, TheFlagCountsBeforeTheVariable) {
  const std::string best = RunnableTargets().front(), last = RunnableTargets().back();
  EXPECT_EQ(Used({"--target", last}, best), last);
  EXPECT_EQ(Used({"--target", best}, last), best);
  EXPECT_EQ(Used({"--target", ""}, last), last) << "an empty flag says nothing";
  EXPECT_EQ(Used({"--target", last}, "foo"), last) << "a bad variable that nobody needs";
  RunWell(kCommands[0] + Arguments{"--target", last}, Variable("foo"));
  RunWell(kCommands[3] + Arguments{"--target", last}, Variable("foo"));
}

}  // namespace
}  // namespace octavo::test
