// octavo_bench: registers every family and says in the report what was measured on what.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>

#include "bench/benchmarks.h"
#include "engine/machine.h"
#include "engine/threads.h"
#include "engine/version.h"

namespace octavo::bench {
namespace {

std::string Compiler() {
#ifdef __clang__
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

// Why numbers of this build mean little; empty when they mean something.
std::string Doubts() {
  std::string doubts;
#ifndef __OPTIMIZE__
  doubts += "not optimized; ";
#endif
#ifndef NDEBUG
  doubts += "assertions on; ";
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  doubts += "sanitized; ";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  doubts += "sanitized; ";
#endif
#endif
  return doubts;
}

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const ThreadCount threads = DefaultThreads();
  benchmark::AddCustomContext("octavo", fmt::format("{} (numerics {})", Version(), kNumericsVersion));
  benchmark::AddCustomContext("cpu", DescribeMachine().cpu_name);
  benchmark::AddCustomContext("threads", fmt::format("{} ({})", threads.count, threads.reason));
  benchmark::AddCustomContext("compiler", Compiler());
  benchmark::AddCustomContext("build", OCTAVO_BUILD);
  if (const std::string doubts = Doubts(); !doubts.empty()) {
    benchmark::AddCustomContext("doubts", doubts);
    std::fprintf(stderr, "***WARNING*** these numbers are not octavo's speed: %suse the preset release\n",
                 doubts.c_str());
  }
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
  return 0;
}

}  // namespace
}  // namespace octavo::bench

int main(int argc, char** argv) {
  try {
    return octavo::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "octavo_bench: %s\n", error.what());
    return 1;
  }
}
