// Decode attention: the vector kernels. The reference, which causal attention shares, is tested in causal_attention_test.cc.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "engine/aligned.h"
#include "kernels/decode_attention.h"
#include "kernels/targets.h"
#include "tests/testing/random.h"
#include "tests/testing/vector_kernel.h"

namespace octavo::test {
namespace {

TEST(VectorKernel, AgreesWithTheReferenceOnEveryTarget) { ExpectVectorKernel("decode_attention"); }

// A lane that holds NaN everywhere, also in the slots that it reads, does not disturb its neighbours.
TEST(VectorKernel, LanesDoNotMix) {
  constexpr size_t kSlots = 5, kSize = 3, kFloats = kSlots * kSize * kPanelRows, kBad = 6;
  Random random(3);
  const std::vector<float> numbers = random.Floats(2 * kFloats + kSize * kPanelRows);
  for (const std::string& target : RunnableTargets()) {
    UseTarget(target);
    AlignedFloats out[2];
    for (AlignedFloats& result : out) {
      AlignedFloats keys(numbers.begin(), numbers.begin() + kFloats),
          values(numbers.begin() + kFloats, numbers.begin() + 2 * kFloats);
      AlignedFloats q(numbers.begin() + 2 * kFloats, numbers.end()), scratch(kSlots * kPanelRows);
      if (&result == &out[1]) {
        for (size_t i = kBad; i < kFloats; i += kPanelRows)
          keys[i] = values[i] = std::numeric_limits<float>::quiet_NaN();
      }
      int32_t lengths[kPanelRows];
      for (size_t r = 0; r < kPanelRows; ++r) lengths[r] = static_cast<int32_t>(1 + r % kSlots);
      result.resize(kSize * kPanelRows);
      DecodeAttention(q.data(), {keys.data(), values.data(), kFloats, kSlots, 2}, lengths, 1, kSize, result.data(),
                      scratch.data());
    }
    for (size_t i = 0; i < out[0].size(); ++i) {
      if (i % kPanelRows == kBad) continue;
      EXPECT_EQ(out[0][i], out[1][i]) << target << " element " << i;
    }
    EXPECT_NE(out[1][kBad], out[1][kBad]) << "NaN went in and none came out";
  }
  UseBestTarget();
}

}  // namespace
}  // namespace octavo::test
