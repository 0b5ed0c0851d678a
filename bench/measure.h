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

// What one run of a kernel does. The counters are FLOP/s, bytes/s and elements/s, and the shares of the roofs.
struct Work {
  double flop = 0;
  double l2_bytes = 0;  // read from a working set that fits L2 but not L1
  double elements = 0;
};

// The shape of a model whose kernels are timed.
struct Shape {
  const char* name;
  size_t width, num_heads, num_layers, context_length, vocabulary_size;
  size_t head_size() const { return width / num_heads; }
};

inline constexpr Shape kTiny = {"tiny", 32, 4, 2, 64, 65};
inline constexpr Shape kSmall = {"small", 128, 8, 4, 128, 65};
inline constexpr Shape kBaby = {"baby", 384, 6, 6, 256, 65};

// Registers `family/op/shape/target` for every target of this CPU. `make` builds the inputs and returns what is timed; the family's checks
// run once before.
void RegisterKernel(const std::string& family, const std::string& op, const std::string& shape, const Work& work,
                    const std::function<std::function<void()>()>& make);

// Registers `family/op/shape/reference`: the scalar reference as baseline.
void RegisterReference(const std::string& family, const std::string& op, const std::string& shape, const Work& work,
                       const std::function<std::function<void()>()>& make);

// One short reading of what `num_threads` threads can do at once on the current target: FLOP/s of multiply-adds in registers, and bytes/s read
// from memory, 64 MiB a thread.
double ReadPeak(int num_threads);
double ReadMemory(int num_threads);

double Median(std::vector<double> values);
double SecondsOf(const std::function<void()>& run);

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
