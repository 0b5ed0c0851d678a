// The vocabulary of the checks: one case of one kernel family, its outcome, and panels made of guarded memory.
#ifndef OCTAVO_ENGINE_CHECK_CASE_H_
#define OCTAVO_ENGINE_CHECK_CASE_H_

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "engine/check/guarded.h"
#include "engine/check/random.h"
#include "kernels/panel.h"

namespace octavo::check {

// The unit roundoff of float.
constexpr double kRoundoff = 0x1p-24;

// Bounds are twice as wide on targets without fused multiply-add.
double TargetSlack();

class Outcome {
 public:
  // |actual - expected| ≤ bound, or it is a failure; NaN is one.
  void Compare(double actual, double expected, double bound, const char* what) {
    const double error = std::abs(actual - expected);
    const double share = error == 0 ? 0 : error / bound;
    if (!(error <= bound)) Fail(what);
    if (share > worst_ || std::isnan(share))
      worst_ = std::isnan(share) ? std::numeric_limits<double>::infinity() : share;
  }

  // Must hold.
  void Require(bool good, const char* what) {
    if (!good) Fail(what);
  }

  void RequireSameBits(float actual, float expected, const char* what) {
    Require(std::bit_cast<uint32_t>(actual) == std::bit_cast<uint32_t>(expected), what);
  }

  // Adds a result to what must be the same on all targets with fused multiply-add, and on all without.
  void Record(float value) { Record(std::bit_cast<uint32_t>(value)); }
  void Record(uint32_t bits) { hash_ = (hash_ ^ bits) * 0x100000001B3; }

  double worst() const { return worst_; }  // largest error as a share of its bound
  bool passed() const { return failure_.empty(); }
  const std::string& failure() const { return failure_; }
  uint64_t hash() const { return hash_; }

 private:
  void Fail(const char* what) {
    if (failure_.empty()) failure_ = what;
    worst_ = std::max(worst_, std::nextafter(1.0, 2.0));
  }

  double worst_ = 0;
  uint64_t hash_ = 0xCBF29CE484222325;  // FNV-1a over words
  std::string failure_;
};

// One random case: draws shapes and inputs, runs the vector kernel on the current target, compares with the scalar reference.
using CaseFunction = Outcome (*)(Random& random);

struct Family {
  const char* name;
  CaseFunction run;
};

// Every kernel family, by name.
std::span<const Family> Families();

struct AttentionShape {
  size_t length;  // positions, or slots of the cache
  size_t num_heads, head_size;
};

// Layer norm's epsilon in configurations, from none that counts to one that rules.
constexpr float kEpsilons[] = {1e-5f, 1e-12f, 1e-6f, 1e-3f, 0.5f};

// Heads of nanoGPT's and GPT-2's models (64, 80, 128), and one between; random cases and fixed ones have them all.
constexpr size_t kLargeHeads[] = {64, 80, 96, 128};

Outcome CheckActivation(Random& random);
Outcome CheckCausalAttention(Random& random);
Outcome CheckCausalAttention(Random& random, const AttentionShape& shape);
Outcome CheckDecodeAttention(Random& random);
Outcome CheckDecodeAttention(Random& random, const AttentionShape& shape);
Outcome CheckEmbed(Random& random);
Outcome CheckLayerNorm(Random& random);
Outcome CheckMatMul(Random& random);
Outcome CheckQkv(Random& random);
Outcome CheckSample(Random& random);
Outcome CheckSoftmax(Random& random);

// Where the contract asks for no alignment: up to an unreadable page, from one on, or one element behind an aligned address.
inline size_t AnyAlignment(Random& random) {
  constexpr size_t kPlaces[] = {alignof(float), kPageStart, kOddStart};
  return kPlaces[random.Below(3)];
}

// Panels in guarded memory; rows behind the last are NaN until a kernel writes them.
class Panels {
 public:
  Panels(size_t num_rows, size_t num_features)
      : num_rows_(num_rows),
        num_features_(num_features),
        floats_(PanelFloats(num_rows, num_features), kPanelAlignment) {}
  // From row-major values.
  Panels(const std::vector<float>& values, size_t num_rows, size_t num_features) : Panels(num_rows, num_features) {
    for (size_t r = 0; r < num_rows; ++r) {
      for (size_t f = 0; f < num_features; ++f) at(r, f) = values[r * num_features + f];
    }
  }

  float& at(size_t row, size_t feature) {
    return floats_[(row / kPanelRows * num_features_ + feature) * kPanelRows + row % kPanelRows];
  }
  std::vector<double> Row(size_t row) {
    std::vector<double> out(num_features_);
    for (size_t f = 0; f < num_features_; ++f) out[f] = static_cast<double>(at(row, f));
    return out;
  }
  float* data() { return floats_.data(); }
  size_t num_rows() const { return num_rows_; }
  size_t num_features() const { return num_features_; }
  bool Intact() const { return floats_.Intact(); }

 private:
  size_t num_rows_, num_features_;
  Guarded<float> floats_;
};

inline std::vector<double> ToDoubles(std::span<const float> values) { return {values.begin(), values.end()}; }

}  // namespace octavo::check

#endif  // OCTAVO_ENGINE_CHECK_CASE_H_
