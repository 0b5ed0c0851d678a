// What the machine can do at most, on the current target: the roofs that kernels are measured against. Used by benchmarks only.
#ifndef OCTAVO_KERNELS_PROBES_H_
#define OCTAVO_KERNELS_PROBES_H_

#include <cstddef>

namespace octavo {

// Runs `rounds` rounds of independent fused multiply-adds (without them: multiplications and additions) in registers, as many chains as
// hide their latency; returns a number that depends on all. ProbeFlopPerRound says how many floating-point operations a round is.
float ProbeMultiplyAdd(size_t rounds);
size_t ProbeFlopPerRound();

// Reads `count` floats in whole vectors, `passes` times; returns a number that depends on all. count is a multiple of 256, data aligned to 64 bytes.
// No way of reading is the fastest from every level of every memory, so there are several, way < kNumReadWays: 1, 2, 4 or 8 streams side by
// side, each through its part from front to back, and the same with prefetching 2 KiB ahead.
inline constexpr size_t kNumReadWays = 8;
float ProbeRead(size_t way, const float* data, size_t count, size_t passes);

}  // namespace octavo

#endif  // OCTAVO_KERNELS_PROBES_H_
