// Cases of the sampling kernel. Which id is drawn hangs on comparisons of rounded sums, so the reference is asked with the uniform number
// and top-p moved to either side by their error bound: the kernel must draw one of the ids that come out.
#include <algorithm>

#include "engine/check/case.h"
#include "kernels/reference/sample.h"
#include "kernels/sample.h"
#include "kernels/strict_math.h"

namespace octavo::check {
namespace {

struct RowRequest {
  float temperature, top_p, uniform;
  int32_t top_k;
};

RowRequest RandomRequest(Random& random, size_t count) {
  static constexpr float kTemperatures[] = {0.0f, 0.3f, 0.8f, 1.0f, 1.0f, 2.0f, 1e-30f, 1e30f};
  RowRequest request{};
  request.temperature = kTemperatures[random.Below(std::size(kTemperatures))];
  request.top_p = random.Bits() % 2 ? 1.0f : static_cast<float>(random.Uniform(0.01, 1));
  request.top_k = random.Bits() % 2 ? 0 : static_cast<int32_t>(random.Below(count + 3));
  request.uniform = static_cast<float>(random.Bits() >> 40) * 0x1p-24f;
  return request;
}

bool IsPossible(const std::vector<float>& logits, const RowRequest& request, int32_t id) {
  const size_t count = logits.size();
  const float largest = *std::max_element(logits.begin(), logits.end()),
              smallest = *std::min_element(logits.begin(), logits.end());
  const double spread =
      static_cast<double>(largest - smallest) / std::max(static_cast<double>(request.temperature), 0x1p-126);
  // Beyond 88, p is zero and its error nothing.
  const double error = TargetSlack() * (static_cast<double>(count) + kSampleBound + std::min(spread, 88.0)) * kRoundoff;
  std::vector<float> scratch(2 * count);
  std::vector<int32_t> order(count);
  for (const double move_p : {0.0, -error, error}) {
    for (const double move_u : {0.0, -error, error}) {
      // A top-p that is off stays off.
      const double top_p =
          request.top_p < 1 ? std::clamp(static_cast<double>(request.top_p) + move_p, 1e-30, 1.0) : 1.0;
      const double uniform = std::clamp(static_cast<double>(request.uniform) + move_u, 0.0, 1.0);
      const int32_t expected =
          reference::Sample(logits.data(), count, request.temperature, static_cast<uint64_t>(request.top_k),
                            static_cast<float>(top_p), static_cast<float>(uniform), scratch.data(), order.data());
      if (expected == id) return true;
    }
  }
  return false;
}

// 16 rows to draw for, in guarded memory.
class Draws {
 public:
  Draws(size_t count, size_t alignment)
      : logits_(kPanelRows, count),
        temperature_(kPanelRows, alignment),
        top_p_(kPanelRows, alignment),
        uniform_(kPanelRows, alignment),
        scratch_(SampleScratchFloats(count), kPanelAlignment),
        top_k_(kPanelRows, alignment),
        ids_(kPanelRows, alignment) {}

  void Set(size_t r, const std::vector<float>& logits, const RowRequest& request) {
    for (size_t i = 0; i < logits.size(); ++i) logits_.at(r, i) = logits[i];
    temperature_[r] = request.temperature;
    top_p_[r] = request.top_p;
    top_k_[r] = request.top_k;
    SetUniform(r, request.uniform);
  }
  void SetUniform(size_t r, float uniform) { uniform_[r] = uniform; }

  const Guarded<int32_t>& Run() {
    Sample(logits_.data(), logits_.num_features(), {temperature_.data(), top_k_.data(), top_p_.data(), uniform_.data()},
           scratch_.data(), ids_.data());
    return ids_;
  }

  bool Intact() const { return scratch_.Intact() && ids_.Intact(); }

 private:
  Panels logits_;
  Guarded<float> temperature_, top_p_, uniform_, scratch_;
  Guarded<int32_t> top_k_, ids_;
};

// Uniform numbers are multiples of this.
constexpr float kStep = 0x1p-24f;

// For each row the smallest uniform number that still draws its id: one step less, or one bit less in a running sum, draws another.
std::vector<float> Thresholds(Draws& draws, const std::vector<RowRequest>& requests) {
  const Guarded<int32_t>& ids = draws.Run();
  const std::vector<int32_t> wanted(ids.data(), ids.data() + kPanelRows);
  // In steps: `low` draws less (or is no uniform number), `high` draws it.
  std::vector<int32_t> low(kPanelRows, -1), high(kPanelRows), middle(kPanelRows);
  for (size_t r = 0; r < kPanelRows; ++r) high[r] = static_cast<int32_t>(requests[r].uniform / kStep);
  for (int bit = 0; bit < 24; ++bit) {
    for (size_t r = 0; r < kPanelRows; ++r) {
      middle[r] = (low[r] + high[r]) / 2;
      draws.SetUniform(r, static_cast<float>(middle[r]) * kStep);
    }
    draws.Run();
    for (size_t r = 0; r < kPanelRows; ++r) (ids[r] < wanted[r] ? low : high)[r] = middle[r];
  }
  std::vector<float> thresholds;
  for (const int32_t steps : high) thresholds.push_back(static_cast<float>(steps) * kStep);
  return thresholds;
}

// A row at its threshold and just below it, among rows that cut nothing and among others that do: it draws what it drew before.
void CheckRowElsewhere(Random& random, const std::vector<float>& logits, RowRequest request, float threshold,
                       Draws& before, size_t row, Outcome& outcome) {
  const size_t count = logits.size();
  for (const bool plain : {true, false}) {
    Draws draws(count, AnyAlignment(random));
    const size_t at = random.Below(kPanelRows);
    for (size_t r = 0; r < kPanelRows; ++r) {
      RowRequest other = RandomRequest(random, count);
      if (plain) other.temperature = other.top_p = 1, other.top_k = 0;
      draws.Set(r, r == at ? logits : random.Floats(count, -5, 5), r == at ? request : other);
    }
    for (const float uniform : {threshold, std::max(0.0f, threshold - kStep)}) {
      before.SetUniform(row, uniform);
      draws.SetUniform(at, uniform);
      outcome.Require(draws.Run()[at] == before.Run()[row], "what a row draws hangs on its neighbours");
    }
  }
}

}  // namespace

Outcome CheckSample(Random& random) {
  Outcome outcome;
  const size_t count = random.Size(140);
  const std::vector<float> values = random.Hostile(kPanelRows * count, random.Bits() % 2 ? 3 : 30);
  const bool plain = random.Bits() % 2;  // no cut in any row: another path
  std::vector<std::vector<float>> rows;
  std::vector<RowRequest> requests;
  Draws draws(count, AnyAlignment(random));
  for (size_t r = 0; r < kPanelRows; ++r) {
    RowRequest request = RandomRequest(random, count);
    if (plain) request.top_p = 1, request.top_k = 0;
    requests.push_back(request);
    rows.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(r * count),
                      values.begin() + static_cast<std::ptrdiff_t>((r + 1) * count));
    draws.Set(r, rows[r], request);
  }
  const Guarded<int32_t>& ids = draws.Run();
  for (size_t r = 0; r < kPanelRows; ++r) {
    outcome.Require(ids[r] >= 0 && static_cast<size_t>(ids[r]) < count && IsPossible(rows[r], requests[r], ids[r]),
                    "drew an id that the reference cannot draw");
    outcome.Record(static_cast<uint32_t>(ids[r]));
  }
  const std::vector<float> thresholds = Thresholds(draws, requests);
  for (const float threshold : thresholds) outcome.Record(threshold);
  for (int i = 0; i < 3; ++i) {
    const size_t r = random.Below(kPanelRows);
    CheckRowElsewhere(random, rows[r], requests[r], thresholds[r], draws, r, outcome);
  }
  outcome.Require(draws.Intact(), "wrote outside");
  return outcome;
}

}  // namespace octavo::check
