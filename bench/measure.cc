// Timing of kernels against the roofs; see measure.h.
#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "engine/check/check.h"
#include "kernels/probes.h"
#include "kernels/targets.h"

namespace octavo::bench {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

// The best of some short runs: what others take of the machine is not the machine's.
template <typename Run>
double BestRate(double amount, const Run& run) {
  double best = 0;
  for (int i = 0; i < 8; ++i) {
    const auto began = Clock::now();
    run();
    best = std::max(best, amount / SecondsSince(began));
  }
  return best;
}

// Bytes/s read from 512 KiB, which no L1 and nearly every L2 holds.
double L2Bandwidth() {
  static const AlignedFloats data = RandomFloats(size_t{1} << 17);
  constexpr int kPasses = 32;
  return BestRate(static_cast<double>(kPasses * data.size() * sizeof(float)), [] {
    for (int i = 0; i < kPasses; ++i) benchmark::DoNotOptimize(ProbeRead(data.data(), data.size()));
  });
}

// What is wrong with a family on the current target, once a run.
const std::string& CheckOnce(const std::string& family, const std::string& target) {
  static std::map<std::pair<std::string, std::string>, std::string> results;
  const auto [found, is_new] = results.try_emplace({family, target});
  if (is_new) {
    check::Options options;
    options.targets = {target};
    options.kernels = {family};
    options.num_cases = 10;
    for (const check::Row& row : check::Run(options)) found->second += row.failure;
  }
  return found->second;
}

// Times `run` and counts; roofs are probed before and after, the better one counts.
void Measure(benchmark::State& state, const Work& work, bool has_roofs, const std::function<void()>& run) {
  double peak = 0, bandwidth = 0;
  const auto probe = [&] {
    if (has_roofs && work.flop > 0) peak = std::max(peak, PeakFlops());
    if (has_roofs && work.l2_bytes > 0) bandwidth = std::max(bandwidth, L2Bandwidth());
  };
  run();
  probe();
  const auto began = Clock::now();
  for (auto _ : state) run();
  const double seconds = SecondsSince(began) / static_cast<double>(state.iterations());
  probe();
  if (work.flop > 0) state.counters["FLOP/s"] = work.flop / seconds;
  if (work.l2_bytes > 0) state.counters["bytes/s"] = work.l2_bytes / seconds;
  if (work.elements > 0) state.counters["ns/element"] = seconds * 1e9 / work.elements;
  if (peak > 0) state.counters["of_peak"] = work.flop / seconds / peak;
  if (bandwidth > 0) state.counters["of_L2"] = work.l2_bytes / seconds / bandwidth;
}

void Register(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime()->Unit(benchmark::kMicrosecond);
}

}  // namespace

double PeakFlops() {
  constexpr size_t kRounds = 100000;
  return BestRate(static_cast<double>(kRounds * ProbeFlopPerRound()),
                  [] { benchmark::DoNotOptimize(ProbeMultiplyAdd(kRounds)); });
}

void RegisterKernel(const std::string& family, const std::string& op, const std::string& shape, const Work& work,
                    const std::function<std::function<void()>()>& make) {
  for (const std::string& target : RunnableTargets()) {
    Register(family + "/" + op + "/" + shape + "/" + target, [=](benchmark::State& state) {
      const std::string& wrong = CheckOnce(family, target);
      if (!wrong.empty()) return state.SkipWithError(wrong.c_str());
      UseTarget(target);
      Measure(state, work, true, make());
      UseBestTarget();
    });
  }
}

void RegisterReference(const std::string& family, const std::string& op, const std::string& shape, const Work& work,
                       const std::function<std::function<void()>()>& make) {
  Register(family + "/" + op + "/" + shape + "/reference",
           [=](benchmark::State& state) { Measure(state, work, false, make()); });
}

AlignedFloats RandomFloats(size_t count, float scale) {
  AlignedFloats out(count);
  // Plain multiplicative congruence: even over [-scale, scale), without low-order patterns that matter here.
  uint64_t bits = 1;
  for (float& x : out) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    x = scale * (static_cast<float>(bits >> 40) * 0x1p-23f - 1);
  }
  return out;
}

RandomMatrix::RandomMatrix(size_t inputs, size_t outputs)
    : bias(outputs, 0.1f), packed(std::vector<float>(inputs * outputs), bias) {
  const AlignedFloats values = RandomFloats(inputs * outputs, 1.7f / std::sqrt(static_cast<float>(inputs)));
  weight.assign(values.begin(), values.end());
  packed = PackedLinear(weight, bias);
}

}  // namespace octavo::bench
