// How kernels are measured: checked once, timed, and set against what the same run finds the machine to be capable of.
#ifndef OCTAVO_BENCH_MEASURE_H_
#define OCTAVO_BENCH_MEASURE_H_

#include <benchmark/benchmark.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "engine/aligned.h"
#include "engine/packed_weights.h"

namespace octavo::bench {

// A part of the bytes that a kernel reads, and how much else it reads until it comes back to them: that decides from which cache they come.
struct Reads {
  double bytes, working_set_bytes;
};

// What one run of a kernel does, as its contract counts it.
struct Work {
  double flop = 0;
  double bytes = 0;               // read, each as often as it must come from where the working set lies
  double working_set_bytes = 0;   // all that it touches
  double elements = 0;            // for ns/element; 0: none
  std::vector<Reads> reads = {};  // the parts of `bytes`, where they have working sets of their own; empty: one part
};

// Floating-point operations of an exponential (kernels/math-inl.h).
inline constexpr double kExpFlop = 17;

// The shape of a model whose kernels are timed.
struct Shape {
  const char* name;
  size_t width, num_heads, num_layers, context_length, vocabulary_size;
  size_t head_size() const { return width / num_heads; }
};

inline constexpr Shape kTiny = {"tiny", 32, 4, 2, 64, 65};
inline constexpr Shape kSmall = {"small", 128, 8, 4, 128, 65};
inline constexpr Shape kBaby = {"baby", 384, 6, 6, 256, 65};
inline constexpr Shape kOdd = {"odd", 33, 3, 2, 50, 61};  // nothing divides a vector

// Builds inputs and returns what is timed.
using Make = std::function<std::function<void()>()>;

struct Kernel {
  std::string family, op, shape;
  Work work;
  Make make;
  Make reference = nullptr;  // the same work by the scalar reference; empty: it would take too long
};

// Registers `family/op/shape/target` for every target of this CPU, on one thread and on all, each of which then runs a copy of its own, and
// `family/op/shape/reference`. The family's checks run once before.
void RegisterKernel(const Kernel& kernel);

// Registers `family/op/shape-cold/target`: each run takes another of so many copies that caches hold none. For kernels that read what they read once.
void RegisterCold(const Kernel& kernel);

// Registers `family/op/shape/peer`: the same work by another library, on one thread, in turn with the kernel on the best target. `make` checks the
// result against the scalar reference and throws where it is wrong.
void RegisterPeer(const Kernel& kernel, const std::string& peer, const Make& make);

// One, and all that there are where there are more: what is timed.
std::vector<int> ThreadCounts();

// `what/target`, with `/threads` behind it where there are several.
std::string NameOf(const std::string& what, const std::string& target, int num_threads);

double Median(std::vector<double> values);
double SecondsOf(const std::function<void()>& run);

// Counts how far the benchmark can be trusted: `spread`, the distance between the quartiles of its readings as a share of their median, and
// `load_by_others`, the share of the machine's CPU time that other processes have taken since this one began; where they are known.
void CountTrust(benchmark::State& state, const std::string& name, const std::vector<double>& readings);

// What CountTrust has seen that makes numbers doubtful, one line each.
std::vector<std::string> Warnings();

// Numbers about as large as those in a trained model, the same in every run.
AlignedFloats RandomFloats(size_t count, float scale = 1);

// A random matrix, plain and packed.
struct RandomMatrix {
  RandomMatrix(size_t inputs, size_t outputs);
  std::vector<float> weight, bias;
  PackedLinear packed;
};

}  // namespace octavo::bench

#endif  // OCTAVO_BENCH_MEASURE_H_
