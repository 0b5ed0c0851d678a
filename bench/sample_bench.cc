// Drawing from the logits of a vocabulary, 16 rows: plain, with temperature, with top-k, with top-p. An element is a draw.
#include <memory>
#include <string>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/panel.h"
#include "kernels/reference/sample.h"
#include "kernels/sample.h"

namespace octavo::bench {
namespace {

struct Cut {
  const char* name;
  float temperature, top_p;
  int32_t top_k;
};

std::function<void()> MakeSample(const Cut& cut, size_t count) {
  auto logits = std::make_shared<AlignedFloats>(RandomFloats(kPanelRows * count, 5)),
       scratch = std::make_shared<AlignedFloats>(*logits);
  auto temperature = std::make_shared<std::vector<float>>(kPanelRows, cut.temperature);
  auto top_p = std::make_shared<std::vector<float>>(kPanelRows, cut.top_p),
       uniform = std::make_shared<std::vector<float>>();
  for (size_t r = 0; r < kPanelRows; ++r) uniform->push_back(static_cast<float>(r) / kPanelRows);
  auto top_k = std::make_shared<std::vector<int32_t>>(kPanelRows, cut.top_k),
       ids = std::make_shared<std::vector<int32_t>>(kPanelRows);
  return [=] {
    Sample(logits->data(), count, {temperature->data(), top_k->data(), top_p->data(), uniform->data()}, scratch->data(),
           ids->data());
  };
}

std::function<void()> MakeReference(const Cut& cut, size_t count) {
  auto logits = std::make_shared<AlignedFloats>(RandomFloats(kPanelRows * count, 5)),
       scratch = std::make_shared<AlignedFloats>(2 * count);
  auto order = std::make_shared<std::vector<int32_t>>(count);
  return [=] {
    for (size_t r = 0; r < kPanelRows; ++r) {
      benchmark::DoNotOptimize(reference::Sample(logits->data() + r * count, count, cut.temperature,
                                                 static_cast<uint64_t>(cut.top_k), cut.top_p,
                                                 static_cast<float>(r) / kPanelRows, scratch->data(), order->data()));
    }
  };
}

}  // namespace

void RegisterSample() {
  for (const size_t count : {kTiny.vocabulary_size, kOdd.vocabulary_size}) {
    for (const Cut& cut :
         {Cut{"plain", 1, 1, 0}, Cut{"temperature", 0.8f, 1, 0}, Cut{"top_k", 1, 1, 10}, Cut{"top_p", 1, 0.9f, 0}}) {
      const double numbers = static_cast<double>(kPanelRows * count);
      RegisterKernel({.family = "sample",
                      .op = cut.name,
                      .shape = std::to_string(count),
                      .work = {.flop = kExpFlop * numbers,
                               .bytes = sizeof(float) * numbers,
                               .working_set_bytes = 2 * sizeof(float) * numbers,
                               .elements = kPanelRows},
                      .make = [=] { return MakeSample(cut, count); },
                      .reference = [=] { return MakeReference(cut, count); }});
    }
  }
}

}  // namespace octavo::bench
