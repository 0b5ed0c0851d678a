// The promise that all targets with fused multiply-add give the same bits, as do all without, in constants: hashes of what each kernel family,
// whole models and whole texts give for fixed inputs. So one machine alone tells whether it agrees with all others. They hold for one version
// of the numerics; digests_test prints new ones, see kernels/README.md.
#ifndef OCTAVO_ENGINE_CHECK_DIGESTS_H_
#define OCTAVO_ENGINE_CHECK_DIGESTS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace octavo::check {

struct ExpectedDigest {
  const char* name;         // a kernel family; "model": logits; "text": texts, their log-probabilities, and a score
  uint64_t fused, unfused;  // on targets with fused multiply-add, and without
};

constexpr size_t kNumDigests = 11;

using DigestValues = std::array<uint64_t, kNumDigests>;

// What is committed (expected_digests.h), and the version of the numerics that it holds for.
std::span<const ExpectedDigest, kNumDigests> ExpectedDigests();
int DigestedNumericsVersion();

// Those of the current target, in that order. 0: a result was not a number.
DigestValues ComputeDigests();

// What differs from the committed ones, by name, found and expected; empty when all is as it should be.
std::string DescribeDigestChanges(const DigestValues& found, bool fused);

// The committed constants as they would read with other values.
std::string FormatExpectedDigests(const DigestValues& fused, const DigestValues& unfused);

// Of single families, on the current target.
uint64_t DigestActivation();
uint64_t DigestCausalAttention();
uint64_t DigestDecodeAttention();
uint64_t DigestEmbed();
uint64_t DigestLayerNorm();
uint64_t DigestMatMul();
uint64_t DigestQkv();
uint64_t DigestSample();
uint64_t DigestSoftmax();
uint64_t DigestModel();
uint64_t DigestText();

}  // namespace octavo::check

#endif  // OCTAVO_ENGINE_CHECK_DIGESTS_H_
