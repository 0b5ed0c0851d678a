// The facts of the machine and of the build; see context.h.
#include "bench/context.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "bench/peers.h"
#include "engine/machine.h"
#include "engine/threads.h"
#include "engine/version.h"
#include "kernels/targets.h"

namespace octavo::bench {
namespace {

std::string Compiler() {
#ifdef __clang__
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

std::string Join(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string Caches() {
  std::vector<std::string> caches;
  for (const Cache& cache : DescribeMachine().caches)
    caches.push_back(fmt::format("L{} {} {} KiB", cache.level, cache.type, cache.size_bytes >> 10));
  return caches.empty() ? "unknown" : Join(caches);
}

// Compiled targets that this CPU does not run.
std::vector<std::string> MissingTargets() {
  std::vector<std::string> missing;
  const std::vector<std::string> runnable = RunnableTargets();
  for (const std::string& target : CompiledTargets()) {
    if (std::find(runnable.begin(), runnable.end(), target) == runnable.end()) missing.push_back(target);
  }
  return missing;
}

// The name of the distribution.
std::string System() {
  constexpr std::string_view kKey = "PRETTY_NAME=\"";
  std::ifstream file("/etc/os-release");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kKey)) return line.substr(kKey.size(), line.size() - kKey.size() - 1);
  }
  return "unknown";
}

std::string SystemKernel() {
  utsname name{};
  return uname(&name) == 0 ? fmt::format("{} {} {}", name.sysname, name.release, name.machine) : "unknown";
}

}  // namespace

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

void AddContext() {
  const ThreadCount threads = DefaultThreads();
  const auto add = [](const std::string& key, const std::string& value) { benchmark::AddCustomContext(key, value); };
  add("octavo", fmt::format("{} (numerics {})", Version(), kNumericsVersion));
  add("cpu", DescribeMachine().cpu_name);
  add("cpu_caches", Caches());
  add("targets_compiled", Join(CompiledTargets()));
  add("targets_run", Join(RunnableTargets()));
  add("targets_missing", Join(MissingTargets()));
  add("threads", std::to_string(threads.count));
  add("threads_reason", threads.reason);  // names the quota where there is one
  add("compiler", Compiler());
  add("build_type", OCTAVO_BUILD_TYPE);
  add("build_flags", OCTAVO_BUILD_FLAGS);
  add("kernel", SystemKernel());
  add("os", System());
  for (const Peer& peer : Peers()) add("peer_" + peer.name, peer.description);
  if (const std::string doubts = Doubts(); !doubts.empty()) add("doubts", doubts);
}

}  // namespace octavo::bench
