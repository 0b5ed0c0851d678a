// Cases of the sampling kernel. Which id is drawn hangs on comparisons of rounded sums, so the reference is asked with the uniform number
// and top-p moved to either side by their error bound: the kernel must draw one of the ids that come out.
#include <algorithm>

#include "engine/check/case.h"
#include "kernels/reference/sample.h"
#include "kernels/sample.h"

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

}  // namespace

Outcome CheckSample(Random& random) {
  Outcome outcome;
  const size_t count = random.Size(140);
  const std::vector<float> values = random.Hostile(kPanelRows * count, random.Bits() % 2 ? 3 : 30);
  Panels logits(values, kPanelRows, count);
  Guarded<float> temperature(kPanelRows), top_p(kPanelRows), uniform(kPanelRows),
      scratch(kPanelRows * count, kPanelAlignment);
  Guarded<int32_t> top_k(kPanelRows), ids(kPanelRows);
  std::vector<RowRequest> requests;
  const bool plain = random.Bits() % 2;  // no cut in any row: another path
  for (size_t r = 0; r < kPanelRows; ++r) {
    RowRequest request = RandomRequest(random, count);
    if (plain) request.top_p = 1, request.top_k = 0;
    temperature[r] = request.temperature;
    top_p[r] = request.top_p;
    uniform[r] = request.uniform;
    top_k[r] = request.top_k;
    requests.push_back(request);
  }
  Sample(logits.data(), count, {temperature.data(), top_k.data(), top_p.data(), uniform.data()}, scratch.data(),
         ids.data());
  for (size_t r = 0; r < kPanelRows; ++r) {
    const std::vector<float> row(values.begin() + static_cast<std::ptrdiff_t>(r * count),
                                 values.begin() + static_cast<std::ptrdiff_t>((r + 1) * count));
    outcome.Require(ids[r] >= 0 && static_cast<size_t>(ids[r]) < count && IsPossible(row, requests[r], ids[r]),
                    "drew an id that the reference cannot draw");
    outcome.Record(static_cast<uint32_t>(ids[r]));
  }
  outcome.Require(scratch.Intact() && ids.Intact(), "wrote outside");
  return outcome;
}

}  // namespace octavo::check
