// octavo_bench: registers every family and says in the report what was measured on what, and what makes it doubtful.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <string>

#include "bench/benchmarks.h"
#include "bench/context.h"
#include "bench/load.h"
#include "bench/measure.h"
#include "tools/descriptors.h"

namespace octavo::bench {
namespace {

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  LoadByOthers();  // counts from here
  AddContext();
  if (const std::string doubts = Doubts(); !doubts.empty()) {
    std::fprintf(stderr, "***WARNING*** these numbers are not octavo's speed: %suse the preset release\n",
                 doubts.c_str());
  }
  RegisterProbes();
  RegisterMatMul();
  RegisterQkv();
  RegisterCausalAttention();
  RegisterDecodeAttention();
  RegisterLayerNorm();
  RegisterActivation();
  RegisterSoftmax();
  RegisterSample();
  RegisterEmbed();
  RegisterGeneration();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  for (const std::string& warning : Warnings()) std::fprintf(stderr, "***WARNING*** %s\n", warning.c_str());
  return 0;
}

}  // namespace
}  // namespace octavo::bench

int main(int argc, char** argv) {
  octavo::tools::OpenAbsentDescriptors();
  try {
    return octavo::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "octavo_bench: %s\n", error.what());
    return 1;
  }
}
