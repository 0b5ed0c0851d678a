// Computes the digests and compares them with the committed ones; see digests.h.
#include "engine/check/digests.h"

#include <fmt/format.h>

#include "engine/check/expected_digests.h"
#include "engine/version.h"
#include "kernels/strict_math.h"

namespace octavo::check {
namespace {

// In the order of kExpectedDigests.
constexpr uint64_t (*kCompute[kNumDigests])() = {
    DigestActivation, DigestCausalAttention, DigestDecodeAttention, DigestEmbed, DigestLayerNorm, DigestMatMul,
    DigestQkv,        DigestSample,          DigestSoftmax,         DigestModel, DigestText};

}  // namespace

std::span<const ExpectedDigest, kNumDigests> ExpectedDigests() { return kExpectedDigests; }

int DigestedNumericsVersion() { return kDigestedNumericsVersion; }

DigestValues ComputeDigests() {
  DigestValues values;
  for (size_t i = 0; i < kNumDigests; ++i) values[i] = kCompute[i]();
  return values;
}

std::string DescribeDigestChanges(const DigestValues& found, bool fused) {
  std::string changes;
  for (size_t i = 0; i < kNumDigests; ++i) {
    const uint64_t expected = fused ? kExpectedDigests[i].fused : kExpectedDigests[i].unfused;
    if (found[i] == expected) continue;
    changes += fmt::format("{}{} found {:016X}, expected {:016X}", changes.empty() ? "" : "; ",
                           kExpectedDigests[i].name, found[i], expected);
  }
  return changes;
}

std::string FormatExpectedDigests(const DigestValues& fused, const DigestValues& unfused) {
  std::string text = fmt::format(
      "constexpr int kDigestedNumericsVersion = {};\n\n"
      "// With fused multiply-add (AVX2, AVX3, NEON), and without (SSE4, SSSE3, portable code).\n"
      "constexpr ExpectedDigest kExpectedDigests[kNumDigests] = {{\n",
      kNumericsVersion);
  for (size_t i = 0; i < kNumDigests; ++i)
    text += fmt::format("    {{\"{}\", 0x{:016X}, 0x{:016X}}},\n", kExpectedDigests[i].name, fused[i], unfused[i]);
  return text + "};\n";
}

}  // namespace octavo::check
