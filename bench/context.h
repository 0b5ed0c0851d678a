// What was measured on what: for the report's head, and for the JSON.
#ifndef OCTAVO_BENCH_CONTEXT_H_
#define OCTAVO_BENCH_CONTEXT_H_

#include <string>

namespace octavo::bench {

// Adds to Google Benchmark's context: CPU, caches, targets, threads and quota, compiler, flags, build type, versions, kernel, system, peers.
void AddContext();

// Why numbers of this build mean little; empty when they mean something.
std::string Doubts();

}  // namespace octavo::bench

#endif  // OCTAVO_BENCH_CONTEXT_H_
