// Runs the cases on the targets; see check.h.
#include "engine/check/check.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "engine/check/case.h"
#include "engine/check/digests.h"
#include "engine/check/models.h"
#include "engine/fail.h"
#include "engine/float_control.h"
#include "engine/target.h"
#include "kernels/targets.h"

namespace octavo::check {
namespace {

constexpr std::array<Family, 10> kFamilies = {{{"activation", CheckActivation},
                                               {"causal_attention", static_cast<CaseFunction>(CheckCausalAttention)},
                                               {"decode_attention", static_cast<CaseFunction>(CheckDecodeAttention)},
                                               {"embed", CheckEmbed},
                                               {"layer_norm", CheckLayerNorm},
                                               {"matmul", CheckMatMul},
                                               {"qkv", CheckQkv},
                                               {"sample", CheckSample},
                                               {"softmax", CheckSoftmax},
                                               {"model", static_cast<CaseFunction>(CheckModel)}}};

// Cases of one family have the same inputs on every target.
uint64_t CaseSeed(uint64_t seed, size_t family, uint64_t number) {
  return seed * 0x9E3779B97F4A7C15 + family * 0x100000001 + number;
}

// `hashes` are those of the cases on the first target of the class; it fills them when there are none yet.
Row RunFamily(size_t index, const std::string& target, const Options& options, std::vector<uint64_t>& hashes) {
  const Family& family = kFamilies[index];
  Row row{family.name, target, 0, 0, true, {}};
  const bool first = hashes.empty();
  for (uint64_t number = 0; number < options.num_cases; ++number) {
    Random random(CaseSeed(options.seed, index, number));
    const bool given = family.run == static_cast<CaseFunction>(CheckModel) && options.model && number == 0;
    const Outcome outcome = given ? CheckModel(random, *options.model) : family.run(random);
    ++row.num_cases;
    row.worst = std::max(row.worst, outcome.worst());
    std::string failure = outcome.failure();
    if (first) hashes.push_back(outcome.hash());
    if (hashes[number] != outcome.hash()) {
      row.same_bits = false;
      if (failure.empty()) {
        failure = fmt::format("other bits than another target {} fused multiply-add",
                              HasFusedMultiplyAdd(target) ? "with" : "without");
      }
    }
    if (!failure.empty() && row.failure.empty())
      row.failure = fmt::format("{} (case {} of seed {})", failure, number, options.seed);
  }
  return row;
}

// Not a comparison of targets here, but with what all machines have found.
Row RunPromise(const std::string& target) {
  Row row{std::string(kPromise), target, kNumDigests, 0, true, {}};
  const bool fused = HasFusedMultiplyAdd(target);
  const std::string changes = DescribeDigestChanges(ComputeDigests(), fused);
  if (changes.empty()) return row;
  row.same_bits = false;
  row.failure = fmt::format("digests differ from those of numerics version {} {} fused multiply-add: {}",
                            DigestedNumericsVersion(), fused ? "with" : "without", changes);
  return row;
}

}  // namespace

double TargetSlack() { return HasFusedMultiplyAdd(CurrentTarget()) ? 1 : 2; }

std::span<const Family> Families() { return kFamilies; }

std::vector<Row> Run(const Options& options, const std::function<void(const Row&)>& on_row) {
  const DefaultFloatControl control;
  std::vector<std::string> targets;
  for (const std::string& name : options.targets.empty() ? RunnableTargets() : options.targets) {
    SelectTarget(name);
    // A target may be named twice, also by different names.
    if (std::find(targets.begin(), targets.end(), CurrentTarget()) == targets.end()) targets.push_back(CurrentTarget());
  }
  const std::vector<std::string>& wanted = options.kernels;
  const auto is_wanted = [&](std::string_view name) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  std::vector<Row> rows;
  const auto add = [&](Row row) {
    rows.push_back(std::move(row));
    if (!on_row) return;
    const DefaultFloatControl undone;  // what the callback makes of it
    on_row(rows.back());
  };
  for (size_t family = 0; family < kFamilies.size(); ++family) {
    if (!is_wanted(kFamilies[family].name)) continue;
    std::vector<uint64_t> hashes[2];  // by whether the target has fused multiply-add
    for (const std::string& target : targets) {
      UseTarget(target);
      add(RunFamily(family, target, options, hashes[HasFusedMultiplyAdd(target)]));
    }
  }
  for (const std::string& target : targets) {
    if (!is_wanted(kPromise)) break;
    UseTarget(target);
    add(RunPromise(target));
  }
  UseBestTarget();
  return rows;
}

}  // namespace octavo::check
