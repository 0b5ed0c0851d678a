// The roofs that kernels are measured against: short readings, on the current target, of multiply-adds and of reading from each level of memory.
// Short, so that they can be taken in turn with a kernel's: what others take of the machine, or a clock that changes, then meets both alike.
#ifndef OCTAVO_BENCH_ROOFS_H_
#define OCTAVO_BENCH_ROOFS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace octavo::bench {

struct MemoryLevel {
  std::string name;    // L1, L2, L3, memory
  size_t holds_bytes;  // the largest working set that it holds
  size_t probe_bytes;  // what is read to see how fast it is
};

// From small to large; the last holds everything.
const std::vector<MemoryLevel>& MemoryLevels();

// The smallest level that holds a working set.
const MemoryLevel& LevelOf(double working_set_bytes);

// FLOP/s of multiply-adds in registers, of num_threads threads at once.
double ReadPeak(int num_threads);

// Bytes/s of num_threads threads at once, each reading its own `bytes` over and over, at least `least_bytes` in all: by the way of reading
// (kernels/probes.h) that was the fastest of all for about so many bytes when it was first asked for.
inline constexpr size_t kLeastReadBytes = size_t{8} << 20;  // 20 µs from L1
double ReadBandwidth(int num_threads, size_t bytes, size_t least_bytes = kLeastReadBytes);

// Bytes/s from memory.
double ReadMemory(int num_threads);

// The sum of rate(0) … rate(num_threads - 1), each on a thread of its own, begun together.
double SumOnThreads(int num_threads, const std::function<double(int)>& rate);

}  // namespace octavo::bench

#endif  // OCTAVO_BENCH_ROOFS_H_
