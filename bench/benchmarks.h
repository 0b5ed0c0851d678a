// The benchmarks of octavo_bench, by family. Each is named family/op/shape/target, with /threads behind where it is not one, and checks
// its result once before it is timed.
#ifndef OCTAVO_BENCH_BENCHMARKS_H_
#define OCTAVO_BENCH_BENCHMARKS_H_

namespace octavo::bench {

// Kernel families, one file each: FLOP/s and bytes/s against the roofs that the same run probes.
void RegisterActivation();
void RegisterCausalAttention();
void RegisterDecodeAttention();
void RegisterEmbed();
void RegisterLayerNorm();
void RegisterMatMul();
void RegisterQkv();
void RegisterSample();
void RegisterSoftmax();

// The roofs themselves.
void RegisterProbes();

// Whole models: writing and scoring text, in characters a second.
void RegisterGeneration();

}  // namespace octavo::bench

#endif  // OCTAVO_BENCH_BENCHMARKS_H_
