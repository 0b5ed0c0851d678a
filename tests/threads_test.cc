// How many threads: what the affinity mask and the container's CPU quota allow, what a user may ask for, what a job needs.
#include "engine/threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <thread>

#include "engine/generate.h"
#include "engine/score.h"
#include "tests/testing/command_checks.h"
#include "tests/testing/errors.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

// What the mask alone gives.
ThreadCount ByAffinity() { return DefaultThreads("/nowhere"); }

// A tiny job must not be slower on many threads than on one: it starts none that it does not need, nor oneTBB.
TEST(Threads, AreNotStartedForOneRequest) {
  const Model model = RandomModel(M8Shape());
  const auto count_threads = [] {
    using Iterator = std::filesystem::directory_iterator;
    return std::distance(Iterator("/proc/self/task"), Iterator());
  };
  const auto request = [](uint64_t sequence) {
    GenerateRequest result;
    result.options.max_chars = 5;
    result.sequence = sequence;
    return result;
  };
  const auto threads_of = [&](size_t num_requests) {
    size_t given = 0;
    std::ptrdiff_t most = 0;
    GenerateAll(
        model, {.num_threads = 9},
        [&] { return given < num_requests ? std::optional(request(given++)) : std::nullopt; },
        [&](const GenerateRequest&, Completion&&) { most = std::max(most, count_threads()); });
    given = 0;
    ScoreAll(
        model, {.num_threads = 9},
        [&] {
          return given++ < num_requests ? std::optional(ScoreRequest{{1, 2, 3}, 0, "", nullptr}) : std::nullopt;
        },
        [&](const ScoreRequest&, Score&&) { most = std::max(most, count_threads()); });
    return most;
  };
  const std::ptrdiff_t before = count_threads();
  ASSERT_LE(before, 3) << "it has to come before all that starts threads, which do not end";
  EXPECT_LE(threads_of(1), before + 1) << "the reader, and no more";
  EXPECT_GE(threads_of(2000), before + 2) << "many requests get more";
}

TEST(Threads, DefaultFollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(DefaultThreads().count, 1);
  EXPECT_LE(DefaultThreads().count, CPU_COUNT(&before));
  EXPECT_EQ(ByAffinity().count, CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const ThreadCount narrow = ByAffinity();
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(narrow.count, 1);
  EXPECT_EQ(narrow.reason, "1 CPU in the affinity mask");
  if (CPU_COUNT(&before) > 1) {
    EXPECT_EQ(ByAffinity().reason, std::to_string(CPU_COUNT(&before)) + " CPUs in the affinity mask");
  }
}

TEST(Threads, ZeroIsAutomaticAndAbsurdIsRefused) {
  const int automatic = DefaultThreads().count;
  EXPECT_EQ(ChooseThreads(0), automatic);
  for (const int count : {1, 2, automatic + 1, 256}) EXPECT_EQ(ChooseThreads(count), count);
  if (std::thread::hardware_concurrency() < 250) {  // more than 4 for each core
    EXPECT_TRUE(Fails([] { ChooseThreads(1000); }, {"threads is 1000"}));
  }
  for (const int count : {-1, -1000, 100'000, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    EXPECT_TRUE(Fails([&] { ChooseThreads(count); }, {"threads is " + std::to_string(count), "0 (automatic)"}));
  }
}

// ---- quotas, in made-up trees ----

constexpr const char* kV2Mount = "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

class QuotaTest : public ::testing::Test {
 protected:
  QuotaTest() { Write("/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"); }

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path whole = folder_.path().string() + path;
    std::filesystem::create_directories(whole.parent_path());
    folder_.Write(path.substr(1), text);
  }

  void SetUpV2(const std::string& group, const std::string& mounts = kV2Mount) const {
    Write("/proc/self/cgroup", "0::" + group + "\n");
    Write("/proc/self/mountinfo", mounts);
  }

  // "a CPU quota of …", or nothing where there is none.
  std::string Quota() const {
    const std::string reason = DefaultThreads(folder_.path().string()).reason, mask = ByAffinity().reason + ", ";
    return reason + ", " == mask ? "" : reason.substr(mask.size());
  }

  // What remains of `allowed` threads under this machine's mask.
  void ExpectThreads(int allowed) const {
    EXPECT_EQ(DefaultThreads(folder_.path().string()).count, std::min(allowed, ByAffinity().count));
  }

  const TemporaryFolder folder_;
};

TEST_F(QuotaTest, IsQuotaOverPeriodRoundedUp) {
  SetUpV2("/");
  const auto expect = [&](const std::string& text, int threads, const std::string& quota) {
    SCOPED_TRACE("'" + text + "'");
    Write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(Quota(), quota.empty() ? "" : "a CPU quota of " + quota + " (cgroup v2)");
    ExpectThreads(threads);
  };
  const int none = std::numeric_limits<int>::max();
  expect("200000 100000\n", 2, "2");
  expect("50000 100000\n", 1, "0.5");
  expect("150000 100000\n", 2, "1.5");
  expect("100000 100000\n", 1, "1");
  expect("100001 100000\n", 2, "1");
  expect("1000 1000000\n", 1, "0.001");
  expect("100000000 100000", 1000, "1000");
  expect("9223372036854775807 1\n", none, "9.223372036854776e+18");
  for (const char* text :
       {"max 100000\n", "", "\n", "200000\n", "200000 0\n", "0 100000\n", "-1 100000\n", "2e5 100000\n",
        "200000 100000 1\n", "200000,100000\n", "99999999999999999999 100000\n", "x y\n", "\xFF\n"}) {
    expect(text, none, "");
  }
}

TEST_F(QuotaTest, SmallestOfAllAncestorsCounts) {
  SetUpV2("/a/b/c");
  Write("/sys/fs/cgroup/a/b/c/cpu.max", "300000 100000\n");
  Write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(Quota(), "a CPU quota of 3 (cgroup v2)");
  Write("/sys/fs/cgroup/a/cpu.max", "125000 50000\n");
  EXPECT_EQ(Quota(), "a CPU quota of 2.5 (cgroup v2)");
  Write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(Quota(), "a CPU quota of 1 (cgroup v2)");
  ExpectThreads(1);
  // Others' groups do not.
  Write("/sys/fs/cgroup/a/b/c/d/cpu.max", "1000 100000\n");
  Write("/sys/fs/cgroup/a/bb/cpu.max", "1000 100000\n");
  EXPECT_EQ(Quota(), "a CPU quota of 1 (cgroup v2)");
}

TEST_F(QuotaTest, ContainerThatSeesItsOwnPartOnly) {
  Write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  Write("/sys/fs/cgroup/x/cpu.max", "100000 100000\n");
  const std::string part = "30 22 0:26 /docker/1f /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
  // The host's path, which is what is mounted; or below it; or not below it, although it begins alike; or outside of a namespace.
  for (const auto& [group, quota] : std::vector<std::pair<std::string, std::string>>{{"/docker/1f", "2"},
                                                                                     {"/docker/1f/x", "1"},
                                                                                     {"/docker/1f/y", "2"},
                                                                                     {"/docker/1fx", "2"},
                                                                                     {"/x", "2"},
                                                                                     {"/", "2"},
                                                                                     {"/../x", "2"},
                                                                                     {"/..", "2"}}) {
    SetUpV2(group, part);
    EXPECT_EQ(Quota(), "a CPU quota of " + quota + " (cgroup v2)") << group;
  }
  // The host's path where a part of the tree is mounted as if it were all.
  SetUpV2("/docker/1f");
  EXPECT_EQ(Quota(), "a CPU quota of 2 (cgroup v2)");
  Write("/sys/fs/x/cpu.max", "1000 100000\n");
  SetUpV2("/../x");
  EXPECT_EQ(Quota(), "a CPU quota of 2 (cgroup v2)") << "x is another's, one level up";
}

TEST_F(QuotaTest, VersionOne) {
  Write("/proc/self/cgroup", "12:cpuset:/wrong\n11:memory:/wrong\n4:cpu,cpuacct:/a/b\n1:name=systemd:/wrong\n");
  Write("/proc/self/mountinfo",
        "30 22 0:25 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
        "31 30 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "32 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n");
  const std::string mount = "/sys/fs/cgroup/cpu,cpuacct";
  EXPECT_EQ(Quota(), "");
  Write(mount + "/a/b/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(Quota(), "") << "without a period";
  Write(mount + "/a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), "a CPU quota of 1.5 (cgroup v1)");
  ExpectThreads(2);
  Write(mount + "/a/cpu.cfs_quota_us", "25000\n");
  Write(mount + "/a/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(Quota(), "a CPU quota of 0.5 (cgroup v1)");
  for (const char* none : {"-1\n", "", "0\n", "max\n", "100 200\n"}) {
    Write(mount + "/a/cpu.cfs_quota_us", none);
    EXPECT_EQ(Quota(), "a CPU quota of 1.5 (cgroup v1)") << none;
  }
  // Of the controllers that have nothing to do with CPU time.
  for (const char* group : {"/wrong", "/a/b"}) {
    Write(std::string("/sys/fs/cgroup/cpuset") + group + "/cpu.cfs_quota_us", "1000\n");
    Write(std::string("/sys/fs/cgroup/cpuset") + group + "/cpu.cfs_period_us", "100000\n");
  }
  EXPECT_EQ(Quota(), "a CPU quota of 1.5 (cgroup v1)");
}

TEST_F(QuotaTest, BothVersionsAtOnce) {
  Write("/proc/self/cgroup", "2:cpu:/one\n0::/two\n");
  Write("/proc/self/mountinfo",
        "32 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "33 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  Write("/sys/fs/cgroup/cpu/one/cpu.cfs_quota_us", "300000\n");
  Write("/sys/fs/cgroup/cpu/one/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), "a CPU quota of 3 (cgroup v1)");
  Write("/sys/fs/cgroup/unified/two/cpu.max", "200000 100000\n");
  EXPECT_EQ(Quota(), "a CPU quota of 2 (cgroup v2)");
  Write("/sys/fs/cgroup/unified/two/cpu.max", "400000 100000\n");
  EXPECT_EQ(Quota(), "a CPU quota of 3 (cgroup v1)");
}

TEST_F(QuotaTest, DamagedFilesOfTheSystemAreNoQuota) {
  Write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  for (const char* group : {"", "\n", ":", "::", "0:", "0", "garbage\n", "4:cpu\n", "4:cpu:/\n", "1::/\n"}) {
    SetUpV2("/");
    Write("/proc/self/cgroup", group);
    EXPECT_EQ(Quota(), "") << group;
  }
  for (const char* mounts : {"", "\n", "-\n", " - cgroup2 \n", "30 22 0:26 / /sys/fs/cgroup rw - cgroup2\n",
                             "30 22 0:26 / - cgroup2 cgroup rw\n", "30 22 0:26 / /sys/fs/cgroup rw cgroup2 x y\n"}) {
    SetUpV2("/", mounts);
    EXPECT_EQ(Quota(), "") << mounts;
  }
  // A good line among bad ones counts.
  SetUpV2("/", "x\n - \n" + std::string(kV2Mount));
  Write("/proc/self/cgroup", "x\n:\n0::/\n");
  EXPECT_EQ(Quota(), "a CPU quota of 1 (cgroup v2)");
}

TEST_F(QuotaTest, MountPointsMayHoldSpaces) {
  SetUpV2("/a b/c", "30 22 0:26 /a\\040b /my\\040groups\\134x rw - cgroup2 cgroup2 rw\n");
  Write("/my groups\\x/c/cpu.max", "200000 100000\n");
  EXPECT_EQ(Quota(), "a CPU quota of 2 (cgroup v2)");
}

}  // namespace
}  // namespace octavo::test
