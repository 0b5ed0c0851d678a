// The digests that every machine must find; see digests.h. digests_test prints the constants where it finds others.
#ifndef OCTAVO_ENGINE_CHECK_EXPECTED_DIGESTS_H_
#define OCTAVO_ENGINE_CHECK_EXPECTED_DIGESTS_H_

#include "engine/check/digests.h"

namespace octavo::check {

constexpr int kDigestedNumericsVersion = 2;

// With fused multiply-add (AVX2, AVX3, NEON), and without (SSE4, SSSE3, portable code).
constexpr ExpectedDigest kExpectedDigests[kNumDigests] = {
    {"activation", 0x09D5F16D240BCDDA, 0xE230D468605A552E},
    {"causal_attention", 0xAA521363E1D427BD, 0x8453E453B817A6A7},
    {"decode_attention", 0xBD17F5FCC2A47977, 0x12EC9368747D6BD3},
    {"embed", 0x39F9064969C84FB6, 0x39F9064969C84FB6},
    {"layer_norm", 0x78225524C67C9FC3, 0x774A1F766B35DBEB},
    {"matmul", 0x747B3AA420720B1D, 0x7A702A43FF013098},
    {"qkv", 0xC83A79BF6332A444, 0x0262E02A8698358C},
    {"sample", 0xEC0770E4C82BD83F, 0xEC0770E4C82BD83F},
    {"softmax", 0x1BE3BF3EF61A01A5, 0x15483B3C2065F5B0},
    {"model", 0x0BF350D34534AAA0, 0xD6920F452ED536E1},
    {"text", 0x7B9FDF42EB4C8B93, 0xF2EDD60DEF7609FF},
};

}  // namespace octavo::check

#endif  // OCTAVO_ENGINE_CHECK_EXPECTED_DIGESTS_H_
