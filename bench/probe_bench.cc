// The roofs themselves, as benchmarks of their own: multiply-adds in registers and reading from each level of memory.
#include <fmt/format.h>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "bench/roofs.h"
#include "kernels/targets.h"

namespace octavo::bench {
namespace {

// The time that Google Benchmark prints is that of a reading.
void RegisterProbe(const std::string& op, const std::string& shape, const std::string& target, int num_threads,
                   const char* unit, const std::function<double()>& read) {
  const std::string name = NameOf(fmt::format("probe/{}/{}", op, shape), target, num_threads);
  const auto run = [=](benchmark::State& state) {
    UseTarget(target);
    std::vector<double> rates;
    for (auto _ : state) {
      state.SetIterationTime(SecondsOf([&] { rates.push_back(read()); }));
    }
    state.counters[unit] = Median(rates);
    CountTrust(state, name, rates);
    UseBestTarget();
  };
  benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Unit(benchmark::kMicrosecond);
}

}  // namespace

void RegisterProbes() {
  for (const std::string& target : RunnableTargets()) {
    for (const int threads : ThreadCounts()) {
      RegisterProbe("multiply_add", "registers", target, threads, "FLOP/s", [=] { return ReadPeak(threads); });
      for (const MemoryLevel& level : MemoryLevels()) {
        RegisterProbe("read", level.name, target, threads, "bytes/s",
                      [=] { return ReadBandwidth(threads, level.probe_bytes); });
      }
    }
  }
}

}  // namespace octavo::bench
