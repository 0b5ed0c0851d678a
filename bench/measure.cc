// Timing of kernels against the roofs; see measure.h.
#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "engine/check/check.h"
#include "kernels/probes.h"
#include "kernels/targets.h"

namespace octavo::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Bytes/s read from 512 KiB, which no L1 and nearly every L2 holds; one short reading.
double ReadL2() {
  static const AlignedFloats data = RandomFloats(size_t{1} << 17);
  constexpr int kPasses = 16;
  const double seconds = SecondsOf([] {
    for (int i = 0; i < kPasses; ++i) benchmark::DoNotOptimize(ProbeRead(data.data(), data.size()));
  });
  return static_cast<double>(kPasses * data.size() * sizeof(float)) / seconds;
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

// The sum of what `read` gives on each of num_threads threads at once.
double ReadOnThreads(int num_threads, const std::function<double(int)>& read) {
  std::vector<double> rates(static_cast<size_t>(num_threads));
  std::vector<std::thread> threads;
  for (int i = 1; i < num_threads; ++i) threads.emplace_back([&, i] { rates[static_cast<size_t>(i)] = read(i); });
  rates[0] = read(0);
  for (std::thread& thread : threads) thread.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

// A kernel's seconds and the roofs, each the median of readings taken in turn, so that what others take of the machine, or a
// clock that changes, meets both alike.
struct Readings {
  double seconds, peak, l2;
};

Readings Interleave(const Work& work, bool has_roofs, const std::function<void()>& run) {
  constexpr int kReadings = 31;
  constexpr double kReadingSeconds = 5e-4;
  run();
  const int runs = std::max(1, static_cast<int>(kReadingSeconds / std::max(SecondsOf(run), 1e-9)));
  std::vector<double> seconds, peaks, l2s;
  for (int i = 0; i < kReadings; ++i) {
    peaks.push_back(has_roofs && work.flop > 0 ? ReadPeak(1) : 0);
    if (has_roofs && work.l2_bytes > 0) {
      l2s.push_back(ReadL2());
      run();  // back into the caches
    } else {
      l2s.push_back(0);
    }
    seconds.push_back(SecondsOf([&] {
                        for (int n = 0; n < runs; ++n) run();
                      }) /
                      runs);
  }
  return {Median(seconds), Median(peaks), Median(l2s)};
}

// Times `run` twice: by Google Benchmark, which gives the time it prints, and in turn with the roofs, which gives the counters.
void Measure(benchmark::State& state, const Work& work, bool has_roofs, const std::function<void()>& run) {
  const Readings readings = Interleave(work, has_roofs, run);
  for (auto _ : state) run();
  if (work.flop > 0) state.counters["FLOP/s"] = work.flop / readings.seconds;
  if (work.l2_bytes > 0) state.counters["bytes/s"] = work.l2_bytes / readings.seconds;
  if (work.elements > 0) state.counters["ns/element"] = readings.seconds * 1e9 / work.elements;
  if (readings.peak > 0) state.counters["of_peak"] = work.flop / readings.seconds / readings.peak;
  if (readings.l2 > 0) state.counters["of_L2"] = work.l2_bytes / readings.seconds / readings.l2;
}

void Register(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime()->Unit(benchmark::kMicrosecond);
}

}  // namespace

double SecondsOf(const std::function<void()>& run) {
  const auto began = Clock::now();
  run();
  return std::chrono::duration<double>(Clock::now() - began).count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double ReadPeak(int num_threads) {
  return ReadOnThreads(num_threads, [](int) {
    constexpr size_t kRounds = 50000;
    const double seconds = SecondsOf([] { benchmark::DoNotOptimize(ProbeMultiplyAdd(kRounds)); });
    return static_cast<double>(kRounds * ProbeFlopPerRound()) / seconds;
  });
}

double ReadMemory(int num_threads) {
  constexpr size_t kFloats = size_t{16} << 20;
  static std::vector<AlignedFloats> data;
  while (data.size() < static_cast<size_t>(num_threads)) data.push_back(RandomFloats(kFloats));
  return ReadOnThreads(num_threads, [](int i) {
    const AlignedFloats& own = data[static_cast<size_t>(i)];
    benchmark::DoNotOptimize(ProbeRead(own.data(), own.size()));  // a system may have taken back what lay idle
    const double seconds = SecondsOf([&] { benchmark::DoNotOptimize(ProbeRead(own.data(), own.size())); });
    return static_cast<double>(kFloats * sizeof(float)) / seconds;
  });
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
