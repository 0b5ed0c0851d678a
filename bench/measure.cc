// Timing of kernels against the roofs; see measure.h.
#include "bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <utility>

#include "bench/load.h"
#include "bench/roofs.h"
#include "engine/check/check.h"
#include "engine/threads.h"
#include "kernels/targets.h"

namespace octavo::bench {
namespace {

using Clock = std::chrono::steady_clock;

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

// A kernel with its inputs, a copy for each thread.
class Made {
 public:
  Made(int num_threads, const Make& make) {
    constexpr double kReadingSeconds = 5e-4;
    for (int i = 0; i < num_threads; ++i) copies_.push_back(make());
    Warm();
    runs_ = std::max(1, static_cast<int>(kReadingSeconds / std::max(Read(), 1e-9)));
  }

  // Seconds of a run, when every thread runs its copy.
  double Read() const {
    return num_threads() / SumOnThreads(num_threads(), [this](int i) {
             return runs_ / SecondsOf([&] {
                      for (int n = 0; n < runs_; ++n) copies_[static_cast<size_t>(i)]();
                    });
           });
  }
  void Warm() const {
    SumOnThreads(num_threads(), [this](int i) {
      copies_[static_cast<size_t>(i)]();
      return 0.0;
    });
  }

  int num_threads() const { return static_cast<int>(copies_.size()); }
  int runs() const { return runs_; }

 private:
  std::vector<std::function<void()>> copies_;
  int runs_ = 1;  // to one reading
};

// What a benchmark times.
struct Subject {
  std::string name;
  Work work;
  Make make;
  int num_threads = 1;
  bool has_roofs = true;
  Make octavo = nullptr;  // timed in turn with it
};

// Google Benchmark calls a benchmark several times, to find out how often to run it and for repetitions: the last made is kept. The second, if any, is
// Subject::octavo.
const std::vector<Made>& MakeOnce(const Subject& subject) {
  static std::string last_name;
  static std::vector<Made> last;
  if (last_name == subject.name) return last;
  last_name.clear();
  last.clear();
  last.emplace_back(subject.num_threads, subject.make);
  if (subject.octavo) last.emplace_back(1, subject.octavo);
  last_name = subject.name;
  return last;
}

std::map<std::string, double>& Spreads() {
  static std::map<std::string, double> spreads;
  return spreads;
}

// Shares of the roof, by name: the last of several repetitions.
std::map<std::string, double>& SharesOfRoof() {
  static std::map<std::string, double> shares;
  return shares;
}

// One reading each of what the machine can do and of the kernel, again and again; the counters are of the medians.
class Readings {
 public:
  Readings(const Work& work, bool has_roofs) : work_(work), has_roofs_(has_roofs) {}

  // Returns the kernel's seconds.
  double Take(const Made& made) {
    if (has_roofs_) {
      peaks_.push_back(ReadPeak(made.num_threads()));
      bandwidths_.push_back(ReadRoof(made.num_threads()));
      made.Warm();  // back into the caches
    }
    seconds_.push_back(made.Read());
    return seconds_.back();
  }

  const std::vector<double>& seconds() const { return seconds_; }

  void Count(benchmark::State& state, const std::string& name, int num_threads) const {
    const double seconds = Median(seconds_), flops = num_threads * work_.flop / seconds,
                 bytes = num_threads * work_.bytes / seconds;
    state.counters["FLOP/s"] = flops;
    state.counters["bytes/s"] = bytes;
    if (work_.elements > 0) state.counters["ns/element"] = seconds * 1e9 / work_.elements / num_threads;
    if (!has_roofs_) return;
    const double of_peak = flops / Median(peaks_), of_bandwidth = bytes / Median(bandwidths_);
    state.counters["of_peak"] = of_peak;
    state.counters["of_bandwidth"] = of_bandwidth;
    if (seconds_.size() >= kReadingsForTenth) {
      const double fastest = num_threads / Fastest(seconds_, std::less<>());
      state.counters["of_peak_undisturbed"] = fastest * work_.flop / Fastest(peaks_, std::greater<>());
      state.counters["of_bandwidth_undisturbed"] = fastest * work_.bytes / Fastest(bandwidths_, std::greater<>());
    }
    SharesOfRoof()[name] = std::max(of_peak, of_bandwidth);
    // The lower of peak and bandwidth · intensity is the one that the kernel uses the larger share of.
    state.counters["of_roof"] = std::max(of_peak, of_bandwidth);
    state.SetLabel("bound by " + (of_peak > of_bandwidth ? "arithmetic" : LevelOf(work_.working_set_bytes).name));
  }

 private:
  // Bytes/s of reading what the kernel reads. Each part is read from as much memory as the kernel touches between two readings of it, so that it
  // comes from where the kernel's comes from; in L1, where short loops would cost time of their own, from half of it.
  double ReadRoof(int num_threads) const {
    const std::vector<Reads> whole = {{work_.bytes, work_.working_set_bytes}};
    const std::vector<Reads>& parts = work_.reads.empty() ? whole : work_.reads;
    const size_t least_bytes = std::max(kLeastReadBytes / parts.size(), kLeastReadBytes / 4);
    double bytes = 0, seconds = 0;
    for (const Reads& part : parts) {
      const size_t from = std::max(static_cast<size_t>(part.working_set_bytes), MemoryLevels().front().probe_bytes);
      bytes += part.bytes;
      seconds += part.bytes / ReadBandwidth(num_threads, from, least_bytes);
    }
    return bytes / seconds;
  }

  // What one reading in ten reaches: others on the machine only ever slow a reading down.
  static constexpr size_t kReadingsForTenth = 50;
  template <typename Faster>
  static double Fastest(std::vector<double> readings, const Faster& faster) {
    const auto tenth = readings.begin() + static_cast<std::ptrdiff_t>(readings.size() / 10);
    std::nth_element(readings.begin(), tenth, readings.end(), faster);
    return *tenth;
  }

  Work work_;
  bool has_roofs_;
  std::vector<double> seconds_, peaks_, bandwidths_;
};

// The time that Google Benchmark prints is the mean of the readings, so that its flags decide how long to measure.
void Measure(benchmark::State& state, const Subject& subject) {
  const std::vector<Made>& made = MakeOnce(subject);
  const int num_readings = subject.has_roofs ? 5 : 1;  // at least
  Readings readings(subject.work, subject.has_roofs);
  std::vector<double> octavo_seconds;
  while (state.KeepRunningBatch(num_readings * made[0].runs())) {
    double seconds = 0;
    for (int i = 0; i < num_readings; ++i) {
      seconds += made[0].runs() * readings.Take(made[0]);
      if (!subject.octavo) continue;
      made[1].Warm();
      octavo_seconds.push_back(made[1].Read());
    }
    state.SetIterationTime(seconds);
  }
  readings.Count(state, subject.name, subject.num_threads);
  if (subject.octavo) state.counters["octavo_over_peer"] = Median(readings.seconds()) / Median(octavo_seconds);
  CountTrust(state, subject.name, readings.seconds());
}

void Register(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Unit(benchmark::kMicrosecond);
}

void RegisterTarget(const Kernel& kernel, const std::string& target, int num_threads) {
  const std::string name = NameOf(fmt::format("{}/{}/{}", kernel.family, kernel.op, kernel.shape), target, num_threads);
  Register(name, [=](benchmark::State& state) {
    const std::string& wrong = CheckOnce(kernel.family, target);
    if (!wrong.empty()) return state.SkipWithError(wrong.c_str());
    UseTarget(target);
    Measure(state, {.name = name, .work = kernel.work, .make = kernel.make, .num_threads = num_threads});
    UseBestTarget();
  });
}

}  // namespace

std::vector<int> ThreadCounts() {
  const int all = DefaultThreads().count;
  return all > 1 ? std::vector{1, all} : std::vector{1};
}

std::string NameOf(const std::string& what, const std::string& target, int num_threads) {
  return fmt::format("{}/{}{}", what, target, num_threads > 1 ? fmt::format("/{}", num_threads) : "");
}

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

void CountTrust(benchmark::State& state, const std::string& name, const std::vector<double>& readings) {
  std::vector<double> sorted = readings;
  std::sort(sorted.begin(), sorted.end());
  const size_t quarter = sorted.size() / 4;
  const double spread = (sorted[sorted.size() - 1 - quarter] - sorted[quarter]) / Median(sorted);
  // Without zeros for what is not known: Google Benchmark would divide by their mean.
  if (spread > 0) state.counters["spread"] = spread;
  if (const double load = LoadByOthers(); load > 0) state.counters["load_by_others"] = load;
  Spreads()[name] = spread;
}

std::vector<std::string> Warnings() {
  constexpr double kMostSpread = 0.05, kMostLoad = 0.05;
  std::vector<std::string> warnings;
  const std::map<std::string, double>& spreads = Spreads();
  if (const double load = LoadByOthers(); load > kMostLoad && !spreads.empty()) {
    warnings.push_back(
        fmt::format("other processes took {:.0f}% of the CPU time: stop them and run again", 100 * load));
  }
  const auto count =
      std::count_if(spreads.begin(), spreads.end(), [](const auto& s) { return s.second > kMostSpread; });
  if (count > 0) {
    const auto& [name, most] = *std::max_element(spreads.begin(), spreads.end(),
                                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    warnings.push_back(
        fmt::format("the readings of {} of {} benchmarks spread by more than {:.0f}%, those of {} by {:.0f}%: measure "
                    "on a quiet machine, or longer (--benchmark_min_time)",
                    count, spreads.size(), 100 * kMostSpread, name, 100 * most));
  }
  constexpr double kMostOfRoof = 1.03;
  const std::map<std::string, double>& shares = SharesOfRoof();
  const auto above = std::count_if(shares.begin(), shares.end(), [=](const auto& s) { return s.second > kMostOfRoof; });
  if (above > 0) {
    const auto& [name, most] = *std::max_element(shares.begin(), shares.end(),
                                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    warnings.push_back(
        fmt::format("{} of {} benchmarks are above their roof, {} {:.2f} times it: they were disturbed, or a probe "
                    "reads too slowly",
                    above, shares.size(), name, most));
  }
  return warnings;
}

void RegisterKernel(const Kernel& kernel) {
  for (const std::string& target : RunnableTargets()) {
    for (const int threads : ThreadCounts()) RegisterTarget(kernel, target, threads);
  }
  if (!kernel.reference) return;
  const std::string name = fmt::format("{}/{}/{}/reference", kernel.family, kernel.op, kernel.shape);
  Register(name, [=](benchmark::State& state) {
    Measure(state, {.name = name, .work = kernel.work, .make = kernel.reference, .has_roofs = false});
  });
}

void RegisterCold(const Kernel& kernel) {
  Kernel cold = kernel;
  cold.shape += "-cold";
  const double memory_bytes = static_cast<double>(MemoryLevels().back().probe_bytes);
  const size_t num_copies = 1 + static_cast<size_t>(memory_bytes / kernel.work.working_set_bytes);
  cold.work.working_set_bytes *= static_cast<double>(num_copies);
  cold.make = [make = kernel.make, num_copies] {
    auto copies = std::make_shared<std::vector<std::function<void()>>>();
    for (size_t i = 0; i < num_copies; ++i) copies->push_back(make());
    return [copies, next = size_t{0}]() mutable {
      (*copies)[next]();
      next = (next + 1) % copies->size();
    };
  };
  for (const std::string& target : RunnableTargets()) RegisterTarget(cold, target, 1);
}

void RegisterPeer(const Kernel& kernel, const std::string& peer, const Make& make) {
  const std::string name = fmt::format("{}/{}/{}/{}", kernel.family, kernel.op, kernel.shape, peer);
  Register(name, [=](benchmark::State& state) {
    try {
      Measure(state, {.name = name, .work = kernel.work, .make = make, .octavo = kernel.make});
    } catch (const std::exception& error) {
      state.SkipWithError(error.what());
    }
  });
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
