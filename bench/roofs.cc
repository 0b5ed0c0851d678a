// Readings of the roofs; see roofs.h.
#include "bench/roofs.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <tuple>

#include "bench/measure.h"
#include "engine/machine.h"
#include "kernels/probes.h"
#include "kernels/targets.h"

namespace octavo::bench {
namespace {

// Of the first CPU's data caches; what small ones have where the system does not tell.
size_t CacheBytes(int level, size_t otherwise) {
  size_t bytes = 0;
  const std::vector<Cache> caches = DescribeMachine().caches;
  for (const Cache& cache : caches) {
    if (cache.level == level && cache.type != "Instruction") bytes = cache.size_bytes;
  }
  return caches.empty() ? otherwise : bytes;
}

std::vector<MemoryLevel> FindMemoryLevels() {
  constexpr size_t kMemoryProbe = size_t{64} << 20;
  // Systems may report the L3 of the whole package, of which a core reaches its own cluster's part: 32 MiB on Zen.
  constexpr size_t kMostL3 = size_t{32} << 20;
  const size_t l1 = CacheBytes(1, 32 << 10), l2 = CacheBytes(2, 512 << 10);
  const size_t l3 = std::min(CacheBytes(3, 0), kMostL3);
  std::vector<MemoryLevel> levels = {{"L1", l1, l1 / 2}};
  if (l2 > l1) levels.push_back({"L2", l2, l2 / 2});
  if (l3 > l2) levels.push_back({"L3", l3, std::min(4 * l2, l3 / 2)});
  levels.push_back({"memory", std::numeric_limits<size_t>::max(), kMemoryProbe});
  return levels;
}

// At least `count` floats that belong to a thread, written by it first.
const float* OwnFloats(int thread, size_t count) {
  static std::vector<AlignedFloats> data(std::thread::hardware_concurrency() + 256);
  AlignedFloats& own = data[static_cast<size_t>(thread)];
  if (own.size() < count) own = RandomFloats(count);
  return own.data();
}

// Makes probes run on a target with vectors. Of portable code compilers make what they can, so that no probe written in it is a roof for another
// kernel; the narrowest vectors are one for all.
class ProbeTarget {
 public:
  ProbeTarget() : target_(CurrentTarget()) {
    if (target_ != "scalar") return;
    for (const std::string& target : RunnableTargets()) {
      if (target != "scalar") UseTarget(target);  // the last is the narrowest
    }
  }
  ~ProbeTarget() { UseTarget(target_); }
  ProbeTarget(const ProbeTarget&) = delete;
  ProbeTarget& operator=(const ProbeTarget&) = delete;

 private:
  std::string target_;
};

}  // namespace

const std::vector<MemoryLevel>& MemoryLevels() {
  static const std::vector<MemoryLevel> levels = FindMemoryLevels();
  return levels;
}

const MemoryLevel& LevelOf(double working_set_bytes) {
  return *std::find_if(MemoryLevels().begin(), MemoryLevels().end() - 1, [&](const MemoryLevel& level) {
    return working_set_bytes <= static_cast<double>(level.holds_bytes);
  });
}

double SumOnThreads(int num_threads, const std::function<double(int)>& rate) {
  std::vector<double> rates(static_cast<size_t>(num_threads));
  std::atomic<int> missing = num_threads;
  const auto run = [&](int i) {
    // Without sleeping: waking takes as long as a reading.
    for (--missing; missing > 0;) std::this_thread::yield();
    rates[static_cast<size_t>(i)] = rate(i);
  };
  std::vector<std::jthread> threads;
  try {
    for (int i = 1; i < num_threads; ++i) threads.emplace_back(run, i);
  } catch (const std::system_error& error) {
    missing = 0;  // those that wait for the others go on
    throw std::runtime_error(fmt::format("cannot start {} threads: {}; try --benchmark_filter without their number",
                                         num_threads, error.code().message()));
  }
  run(0);
  for (std::jthread& thread : threads) thread.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

double ReadPeak(int num_threads) {
  const ProbeTarget probe_target;
  const size_t rounds = (size_t{1} << 24) / ProbeFlopPerRound();
  return SumOnThreads(num_threads, [&](int) {
    const double seconds = SecondsOf([&] { benchmark::DoNotOptimize(ProbeMultiplyAdd(rounds)); });
    return static_cast<double>(rounds * ProbeFlopPerRound()) / seconds;
  });
}

namespace {

double ReadOneWay(size_t way, int num_threads, size_t bytes, size_t least_bytes) {
  constexpr size_t kMultiple = 256;  // floats, as ProbeRead wants
  const size_t count = (bytes / sizeof(float) + kMultiple - 1) / kMultiple * kMultiple;
  const size_t passes = (least_bytes + count * sizeof(float) - 1) / (count * sizeof(float));
  return SumOnThreads(num_threads, [&](int i) {
    const float* data = OwnFloats(i, count);
    // Into the caches, or back from a system that took what lay idle.
    benchmark::DoNotOptimize(ProbeRead(way, data, count, 1));
    const double seconds = SecondsOf([&] { benchmark::DoNotOptimize(ProbeRead(way, data, count, passes)); });
    return static_cast<double>(passes * count * sizeof(float)) / seconds;
  });
}

// Others on the machine only ever slow a reading down, so the fastest reading of all tells the way.
size_t FastestWay(int num_threads, size_t bytes) {
  constexpr int kRounds = 5;
  static std::map<std::tuple<std::string, int, int>, size_t> ways;
  const auto [found, is_new] = ways.try_emplace({CurrentTarget(), num_threads, std::bit_width(bytes)});
  if (!is_new) return found->second;
  double most = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (size_t way = 0; way < kNumReadWays; ++way) {
      const double rate = ReadOneWay(way, num_threads, bytes, kLeastReadBytes);
      if (rate <= most) continue;
      most = rate;
      found->second = way;
    }
  }
  return found->second;
}

}  // namespace

double ReadBandwidth(int num_threads, size_t bytes, size_t least_bytes) {
  const ProbeTarget probe_target;
  return ReadOneWay(FastestWay(num_threads, bytes), num_threads, bytes, least_bytes);
}

double ReadMemory(int num_threads) { return ReadBandwidth(num_threads, MemoryLevels().back().probe_bytes); }

}  // namespace octavo::bench
