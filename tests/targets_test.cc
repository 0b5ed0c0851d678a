// The instruction sets: what is compiled in is what the kernels know, and what has fused multiply-add is told from what has not.
#include "kernels/targets.h"

#include <gtest/gtest.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "kernels/probes.h"

namespace octavo::test {
namespace {

// By name, whether it has fused multiply-add.
const std::map<std::string, bool> kKnown = {{"AVX3", true},   {"AVX2", true}, {"SSE4", false},
                                            {"SSSE3", false}, {"NEON", true}, {"NEON_WITHOUT_AES", true},
                                            {"scalar", false}};

// A newer Highway may bring targets that tiles and promises were not made for; the build keeps them out.
TEST(Targets, AllThatAreCompiledInAreKnown) {
  const std::vector<std::string> compiled = CompiledTargets();
  EXPECT_FALSE(compiled.empty());
  for (const std::string& name : compiled) EXPECT_TRUE(kKnown.contains(name)) << name;
#if defined(__x86_64__)
  for (const char* name : {"AVX3", "AVX2", "SSE4", "SSSE3"}) {
    EXPECT_EQ(std::count(compiled.begin(), compiled.end(), name), 1) << name;
  }
#else
  EXPECT_EQ(std::count(compiled.begin(), compiled.end(), "NEON"), 1);
#endif
}

TEST(Targets, FusedMultiplyAdd) {
  for (const auto& [name, has] : kKnown) EXPECT_EQ(HasFusedMultiplyAdd(name), has) << name;
}

TEST(Targets, UseTargetTakesAnyThatRunsAndNoOther) {
  const std::vector<std::string> compiled = CompiledTargets(), runnable = RunnableTargets();
  EXPECT_FALSE(runnable.empty());
  for (const std::string& name : runnable) {
    EXPECT_EQ(std::count(compiled.begin(), compiled.end(), name), 1) << name;
    EXPECT_TRUE(UseTarget(name));
    EXPECT_EQ(CurrentTarget(), name);
  }
  for (const char* name : {"", "AVX9", "AVX", "SVE", "AVX3_DL"}) {
    EXPECT_FALSE(UseTarget(name)) << name;
    EXPECT_EQ(CurrentTarget(), runnable.back()) << name;
  }
  UseBestTarget();
  EXPECT_EQ(CurrentTarget(), runnable.front());
}

// Not only by name: a round of the probe is 2 · chains · lanes FLOP (kernels/probes.h).
TEST(Targets, KernelsRunOnTheOneInUse) {
  const std::map<std::string, size_t> flop = {{"AVX3", 512}, {"AVX2", 192}, {"SSE4", 96},
                                              {"SSSE3", 96}, {"NEON", 128}, {"NEON_WITHOUT_AES", 128}};
  for (const std::string& name : RunnableTargets()) {
    UseTarget(name);
    if (flop.contains(name)) {
      EXPECT_EQ(ProbeFlopPerRound(), flop.at(name)) << name;
    }
  }
  UseBestTarget();
}

#if defined(__aarch64__)
// Highway asks the same. Where something is preloaded it is tests/cpus/no_aes.cc, and without its effect the run would prove nothing.
TEST(Targets, AesIsReportedAndMaskedWhereItShouldBe) {
  const bool has_aes = (getauxval(AT_HWCAP) & HWCAP_AES) != 0;
  RecordProperty("aes", has_aes);
  EXPECT_TRUE(!has_aes || !std::getenv("LD_PRELOAD"));
}
#endif

}  // namespace
}  // namespace octavo::test
