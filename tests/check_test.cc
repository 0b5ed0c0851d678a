// The checks as a library: whole models on every target, and what `octavo check` is asked for.
#include "engine/check/check.h"

#include <gtest/gtest.h>

#include <cctype>

#include "engine/error.h"
#include "kernels/targets.h"
#include "tests/testing/vector_kernel.h"

namespace octavo::test {
namespace {

TEST(Check, WholeModelsAgreeOnEveryTarget) { ExpectVectorKernel("model", 60); }

TEST(Check, RunsEveryKernelOnTheTargetsAskedFor) {
  check::Options options;
  options.num_cases = 1;
  options.targets = {RunnableTargets().back()};
  size_t seen = 0;
  const std::vector<check::Row> rows = check::Run(options, [&](const check::Row&) { ++seen; });
  EXPECT_EQ(rows.size(), 11u) << "kernels, whole models, the promise";
  EXPECT_EQ(seen, rows.size());
  for (const check::Row& row : rows) EXPECT_EQ(row.target, RunnableTargets().back());
  EXPECT_EQ(CurrentTarget(), RunnableTargets().front());
}

TEST(Check, RunsATargetOnceHoweverOftenItIsNamed) {
  check::Options options;
  options.num_cases = 1;
  options.kernels = {"embed"};
  std::string lower = RunnableTargets().front();
  for (char& c : lower) c = static_cast<char>(std::tolower(c));
  options.targets = {lower, RunnableTargets().front(), RunnableTargets().back(), lower};
  if (RunnableTargets().front() == "AVX3") options.targets.push_back("avx512");
  EXPECT_EQ(check::Run(options).size(), RunnableTargets().size() > 1 ? 2u : 1u);
}

TEST(Check, ATargetThatIsNotThereIsAnError) {
  check::Options options;
  options.targets = {"AVX9"};
  EXPECT_THROW(check::Run(options), Error);
}

}  // namespace
}  // namespace octavo::test
