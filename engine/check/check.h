// `octavo check` as a library: every kernel on every target against the scalar reference, then whole models; and the promise that all targets
// with fused multiply-add give the same bits, as do all without: among those of this CPU, and by committed digests with those of all others.
#ifndef OCTAVO_ENGINE_CHECK_CHECK_H_
#define OCTAVO_ENGINE_CHECK_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model.h"

namespace octavo::check {

// The rows that compare fixed cases, the same whatever the options, with what every machine must find.
constexpr std::string_view kPromise = "promise";

struct Options {
  std::vector<std::string> targets;  // each is run once; empty: all that this CPU runs
  std::vector<std::string> kernels;  // empty: all, "model" and kPromise
  const Model* model = nullptr;      // checked as the first case of "model", beside random ones
  uint64_t num_cases = 100;          // of each kernel on each target
  uint64_t seed = 1;
};

// One kernel, "model" or kPromise on one target.
struct Row {
  std::string kernel, target;
  uint64_t num_cases = 0;  // for kPromise, digests
  double worst = 0;        // largest error as a share of its bound; at most 1 is right
  bool same_bits = true;  // as the other targets with, or without, fused multiply-add; for kPromise, as on all machines
  std::string failure;    // empty: passed. What went wrong, and the case that shows it
};

// Runs the checks; `on_row` sees each row as it is done. Leaves the best target in use. Throws Error for a target that cannot run.
std::vector<Row> Run(const Options& options, const std::function<void(const Row&)>& on_row = nullptr);

}  // namespace octavo::check

#endif  // OCTAVO_ENGINE_CHECK_CHECK_H_
