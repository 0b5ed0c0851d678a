// The digests of fixed cases, by which one machine tells whether it agrees with all others: they hold on every target, whatever is asked for;
// and a change of a single bit or of the version of the numerics is seen.
#include "engine/check/digests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "engine/check/case.h"
#include "engine/check/check.h"
#include "engine/check/fixed.h"
#include "engine/version.h"
#include "kernels/targets.h"

namespace octavo::test {
namespace {

using check::DigestValues;

DigestValues Expected(bool fused) {
  DigestValues values;
  for (size_t i = 0; i < check::kNumDigests; ++i)
    values[i] = fused ? check::ExpectedDigests()[i].fused : check::ExpectedDigests()[i].unfused;
  return values;
}

TEST(Digests, HoldOnEveryTarget) {
  DigestValues found[2] = {Expected(false), Expected(true)};
  bool same = true;
  for (const std::string& target : RunnableTargets()) {
    UseTarget(target);
    const bool fused = HasFusedMultiplyAdd(target);
    const DigestValues values = check::ComputeDigests();
    EXPECT_EQ(check::DescribeDigestChanges(values, fused), "") << target;
    if (values == Expected(fused)) continue;
    same = false;
    found[fused] = values;
  }
  UseBestTarget();
  const bool same_version = check::DigestedNumericsVersion() == kNumericsVersion;
  EXPECT_TRUE(same_version) << "kNumericsVersion is another than that of the digests";
  if (same && same_version) return;
  ADD_FAILURE()
      << "If the cases were changed, or the numerics were and kNumericsVersion in engine/version.h was raised, put "
         "this into "
         "engine/check/expected_digests.h (from a CPU with AVX2 or AVX-512, which has both kinds of targets):\n\n"
      << check::FormatExpectedDigests(found[true], found[false]);
}

TEST(Digests, AreNamedByFamily) {
  std::set<std::string> names, expected = {"text"};
  for (const check::Family& family : check::Families()) expected.insert(family.name);
  for (const check::ExpectedDigest& digest : check::ExpectedDigests()) names.insert(digest.name);
  EXPECT_EQ(names, expected);
}

TEST(Digests, ChangesAreNamed) {
  for (const bool fused : {true, false}) {
    DigestValues values = Expected(fused);
    EXPECT_EQ(check::DescribeDigestChanges(values, fused), "");
    const uint64_t before = values[4];
    values[4] ^= 1;
    values[10] = 0;
    EXPECT_EQ(check::DescribeDigestChanges(values, fused),
              fmt::format("layer_norm found {:016X}, expected {:016X}; text found 0000000000000000, expected {:016X}",
                          before ^ 1, before, Expected(fused)[10]));
  }
  EXPECT_NE(check::DescribeDigestChanges(Expected(true), false), "")
      << "both kinds of targets have digests of their own";
}

template <typename... Values>
uint64_t HashOf(const Values&... values) {
  check::DigestHash hash;
  (hash.Add(values), ...);
  return hash.value();
}

TEST(Digests, EveryBitCounts) {
  EXPECT_EQ(HashOf(1.0f, 2.0f), HashOf(1.0f, 2.0f));
  EXPECT_NE(HashOf(1.0f, 2.0f), HashOf(2.0f, 1.0f));
  EXPECT_NE(HashOf(1.0f, 2.0f), HashOf(1.0f, std::nextafter(2.0f, 3.0f)));
  EXPECT_NE(HashOf(0.0f), HashOf(-0.0f));
  EXPECT_NE(HashOf(1.0), HashOf(std::nextafter(1.0, 2.0)));
  EXPECT_EQ(HashOf(1.0f, NAN), 0u);
  EXPECT_EQ(HashOf(static_cast<double>(NAN), 1.0f), 0u);
}

// Numbers that every platform makes alike: multiples of 2^-23, and bits put together.
TEST(FixedInputs, AreExact) {
  check::FixedInputs inputs(1);
  for (const float x : inputs.Numbers(1000, 2)) {
    EXPECT_EQ(x * 0x1p22f, std::round(x * 0x1p22f));
    EXPECT_TRUE(x >= -2 && x < 2) << x;
  }
  for (const float x : inputs.Magnitudes(1000, -126, 100)) {
    EXPECT_TRUE(std::isnormal(x) && std::abs(x) < 0x1p100f) << x;
  }
  EXPECT_EQ(check::FixedInputs(7).Numbers(2, 1), (std::vector<float>{0x1.047d94p-1f, 0x1.cc159cp-1f}));
  EXPECT_EQ(check::FixedInputs(7).Magnitudes(2, -30, 4), (std::vector<float>{-0x1.cdb34ep-13f, 0x1.6982c4p-20f}));
}

// The rows of a run that asks for `kernels`, one a target.
std::vector<check::Row> PromiseRows(uint64_t seed, uint64_t num_cases, const std::vector<std::string>& kernels) {
  check::Options options;
  options.seed = seed;
  options.num_cases = num_cases;
  options.kernels = kernels;
  std::vector<check::Row> rows = check::Run(options);
  std::erase_if(rows, [](const check::Row& row) { return row.kernel != check::kPromise; });
  return rows;
}

TEST(PromiseRow, IsTheSameWhateverIsAskedFor) {
  const std::string promise(check::kPromise);
  for (const auto& rows : {PromiseRows(1, 1, {promise}), PromiseRows(9, 3, {"embed", promise})}) {
    ASSERT_EQ(rows.size(), RunnableTargets().size());
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].target, RunnableTargets()[i]);
      EXPECT_EQ(rows[i].num_cases, check::kNumDigests);
      EXPECT_EQ(rows[i].failure, "");
      EXPECT_TRUE(rows[i].same_bits);
    }
  }
  EXPECT_TRUE(PromiseRows(1, 1, {"embed"}).empty());
}

}  // namespace
}  // namespace octavo::test
