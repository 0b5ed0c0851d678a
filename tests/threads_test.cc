// How many threads: what the affinity mask allows, what a user may ask for.
#include "engine/threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <limits>
#include <string>

#include "tests/testing/errors.h"

namespace octavo::test {
namespace {

TEST(Threads, DefaultFollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(DefaultThreads().count, 1);
  EXPECT_LE(DefaultThreads().count, CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const ThreadCount narrow = DefaultThreads();
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(narrow.count, 1);
  EXPECT_EQ(narrow.reason, "1 CPU in the affinity mask");
  if (CPU_COUNT(&before) > 1) {
    EXPECT_NE(DefaultThreads().reason.find(" CPUs in the"), std::string::npos) << DefaultThreads().reason;
  }
}

TEST(Threads, ZeroIsAutomaticAndAbsurdIsRefused) {
  const int automatic = DefaultThreads().count;
  EXPECT_EQ(ChooseThreads(0), automatic);
  for (const int count : {1, 2, automatic + 1, 256}) EXPECT_EQ(ChooseThreads(count), count);
  for (const int count : {-1, -1000, 100'000, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    EXPECT_TRUE(Fails([&] { ChooseThreads(count); }, {"threads is " + std::to_string(count), "0 (automatic)"}));
  }
}

}  // namespace
}  // namespace octavo::test
