// octavo_bench: registers every family and says in the report what was measured on what, and what makes it doubtful.
#include <benchmark/benchmark.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "bench/benchmarks.h"
#include "bench/context.h"
#include "bench/load.h"
#include "bench/measure.h"
#include "tools/descriptors.h"

namespace octavo::bench {
namespace {

// Google Benchmark does not look whether what it wrote to --benchmark_out has arrived.
class CheckedJson : public benchmark::JSONReporter {
 public:
  void Finalize() override {
    JSONReporter::Finalize();
    has_failed_ = !GetOutputStream().flush();
    error_ = errno;
  }
  // 0: all is written.
  int error() const { return has_failed_ ? error_ : 0; }

 private:
  bool has_failed_ = false;
  int error_ = 0;
};

// The file of --benchmark_out where it gets JSON, the default format.
std::string JsonFile(int argc, char** argv) {
  std::string file;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    constexpr std::string_view kOut = "--benchmark_out=", kFormat = "--benchmark_out_format=";
    if (argument.starts_with(kOut)) file = argument.substr(kOut.size());
    if (argument.starts_with(kFormat) && argument != "--benchmark_out_format=json") return "";
  }
  return file;
}

int FailToWrite(const char* where, int error) {
  std::fprintf(stderr, "octavo_bench: cannot write to %s: %s\n", where, std::strerror(error));
  return 1;
}

int Main(int argc, char** argv) {
  const std::string json_file = JsonFile(argc, argv);  // Initialize takes the flags that it knows
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
  CheckedJson json;
  const size_t num_run = benchmark::RunSpecifiedBenchmarks(nullptr, json_file.empty() ? nullptr : &json);
  benchmark::Shutdown();
  if (num_run == 0) {
    std::fprintf(stderr,
                 "octavo_bench: --benchmark_filter matches no benchmark; --benchmark_list_tests shows their names\n");
    return 1;
  }
  if (json.error() != 0) return FailToWrite(json_file.c_str(), json.error());
  if (!std::cout.flush() || std::fflush(stdout) != 0) return FailToWrite("standard output", errno);
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
