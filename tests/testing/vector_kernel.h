// The vector kernels of a family against the scalar reference, on every tested target: the cases of engine/check/.
#ifndef OCTAVO_TESTS_TESTING_VECTOR_KERNEL_H_
#define OCTAVO_TESTS_TESTING_VECTOR_KERNEL_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/check/case.h"
#include "engine/check/check.h"
#include "tests/testing/targets.h"

namespace octavo::test {

// Random and hostile shapes and inputs, guarded buffers, NaN in what must not be read, bounds from the sums, the same bits on all targets
// with fused multiply-add, and on all without. Fails when no target ran. Those that ran are the property "targets" of the test's report.
inline void ExpectVectorKernel(const std::string& name, uint64_t num_cases = 200) {
  check::Options options;
  options.kernels = {name};
  options.targets = TestedTargets();
  options.num_cases = num_cases;
  ASSERT_FALSE(options.targets.empty());
  const std::vector<check::Row> rows = check::Run(options);
  EXPECT_EQ(rows.size(), options.targets.size());
  EXPECT_FALSE(rows.empty());
  std::string targets;
  for (const check::Row& row : rows) {
    SCOPED_TRACE(row.kernel + " on " + row.target);
    EXPECT_EQ(row.failure, "");
    EXPECT_EQ(row.num_cases, num_cases);
    EXPECT_TRUE(row.worst <= 1) << row.worst;
    EXPECT_TRUE(row.same_bits);
    targets += (targets.empty() ? "" : " ") + row.target;
  }
  ::testing::Test::RecordProperty("targets", targets);
}

// The same for attention of heads as large and texts as long as in models that users bring, one case each.
inline void ExpectLargeAttention(check::Outcome (*check)(check::Random& random, const check::AttentionShape& shape)) {
  std::vector<check::AttentionShape> shapes = {{300, 1, 8}};
  for (const size_t size : check::kLargeHeads) shapes.push_back({shapes.size() * 9, 1, size});
  for (const std::string& target : RunnableTargets()) {
    UseTarget(target);
    for (const check::AttentionShape& shape : shapes) {
      check::Random random(1);
      const check::Outcome outcome = check(random, shape);
      EXPECT_EQ(outcome.failure(), "") << target << ", length " << shape.length << ", head size " << shape.head_size;
      EXPECT_TRUE(outcome.worst() <= 1) << outcome.worst();
    }
  }
  UseBestTarget();
}

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_VECTOR_KERNEL_H_
