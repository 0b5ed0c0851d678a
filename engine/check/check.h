// `octavo check` as a library: every kernel on every target against the scalar reference, then whole models, and the promise that all
// targets with fused multiply-add give the same bits, as do all without.
#ifndef OCTAVO_ENGINE_CHECK_CHECK_H_
#define OCTAVO_ENGINE_CHECK_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/model.h"

namespace octavo::check {

struct Options {
  std::vector<std::string> targets;  // each is run once; empty: all that this CPU runs
  std::vector<std::string> kernels;  // empty: all, and "model"
  const Model* model = nullptr;      // checked as the first case of "model", beside random ones
  uint64_t num_cases = 100;          // of each kernel on each target
  uint64_t seed = 1;
};

// One kernel, or "model", on one target.
struct Row {
  std::string kernel, target;
  uint64_t num_cases = 0;
  double worst = 0;       // largest error as a share of its bound; at most 1 is right
  bool same_bits = true;  // as the other targets with, or without, fused multiply-add
  std::string failure;    // empty: passed. What went wrong, and the case that shows it
};

// Runs the checks; `on_row` sees each row as it is done. Leaves the best target in use. Throws Error for a target that cannot run.
std::vector<Row> Run(const Options& options, const std::function<void(const Row&)>& on_row = nullptr);

}  // namespace octavo::check

#endif  // OCTAVO_ENGINE_CHECK_CHECK_H_
