// Vector bodies of the roofline probes; see probes.h.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_PROBES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_PROBES_INL_H_
#undef OCTAVO_KERNELS_PROBES_INL_H_
#else
#define OCTAVO_KERNELS_PROBES_INL_H_
#endif

#include "kernels/probes.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

// As many chains as hide the latency, which is latency times throughput: 4 · 2 on x86-64, 4 · 4 on large Arm cores.
constexpr size_t kProbeChains = kManyRegisters ? 16 : 12;

HWY_NOINLINE float ProbeMultiplyAdd(size_t rounds) {
  const DF d;
  VF chain[kProbeChains];
  OCTAVO_UNROLL
  for (size_t i = 0; i < kProbeChains; ++i) chain[i] = hn::Set(d, static_cast<float>(i));
  // Converges to 1, far from denormals and overflow. Read at run time: of constants, a compiler finds the chain that stays 1 and drops it.
  const volatile float half = 0.5f;
  const VF factor = hn::Set(d, half), term = hn::Set(d, half);
  for (size_t round = 0; round < rounds; ++round) {
    OCTAVO_UNROLL
    for (size_t i = 0; i < kProbeChains; ++i) chain[i] = hn::MulAdd(chain[i], factor, term);
  }
  VF sum = hn::Zero(d);
  OCTAVO_UNROLL
  for (size_t i = 0; i < kProbeChains; ++i) sum = hn::Add(sum, chain[i]);
  return hn::GetLane(sum);
}

HWY_NOINLINE size_t ProbeFlopPerRound() { return 2 * kProbeChains * kLanes; }

// Joined by `or`, for which every CPU has as many units as for loads; some have fewer that add.
template <size_t kStreams, bool kPrefetch>
float ReadStreams(const float* HWY_RESTRICT data, size_t count, size_t passes) {
  const DF d;
  constexpr size_t kVectors = 8, kLoads = kVectors / kStreams;  // a round; of each stream
  constexpr size_t kLine = 16, kAhead = 512;                    // floats
  VF sum[kVectors];
  OCTAVO_UNROLL
  for (size_t i = 0; i < kVectors; ++i) sum[i] = hn::Zero(d);
  const size_t stream = count / kStreams;
  for (size_t pass = 0; pass < passes; ++pass) {
    for (size_t at = 0; at < stream; at += kLoads * kLanes) {
      if constexpr (kPrefetch) {
        // Behind the end comes the begin, as the next pass reads it.
        const size_t ahead = at + kAhead < stream ? at + kAhead : at % kAhead;
        OCTAVO_UNROLL
        for (size_t i = 0; i < kStreams; ++i) {
          for (size_t line = 0; line < kLoads * kLanes; line += kLine) {
            hwy::Prefetch(data + i * stream + ahead + line);
          }
        }
      }
      OCTAVO_UNROLL
      for (size_t i = 0; i < kVectors; ++i) {
        sum[i] = hn::Or(sum[i], hn::Load(d, data + i / kLoads * stream + at + i % kLoads * kLanes));
      }
    }
  }
  OCTAVO_UNROLL
  for (size_t i = 1; i < kVectors; ++i) sum[0] = hn::Or(sum[0], sum[i]);
  return hn::GetLane(sum[0]);
}

HWY_NOINLINE float ProbeRead(size_t way, const float* HWY_RESTRICT data, size_t count, size_t passes) {
  using Way = float (*)(const float*, size_t, size_t);
  constexpr Way kWays[kNumReadWays] = {ReadStreams<1, false>, ReadStreams<2, false>, ReadStreams<4, false>,
                                       ReadStreams<8, false>, ReadStreams<1, true>,  ReadStreams<2, true>,
                                       ReadStreams<4, true>,  ReadStreams<8, true>};
  return kWays[way](data, count, passes);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_PROBES_INL_H_
