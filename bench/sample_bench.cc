// Drawing from the logits of a vocabulary, 16 rows: plain, with temperature, with top-k, with top-p. An element is a draw.
#include <memory>
#include <string>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/panel.h"
#include "kernels/reference/sample.h"
#include "kernels/sample.h"

namespace octavo::bench {
namespace {

struct Cut {
  const char* name;
  size_t count;
  float temperature, top_p;
  int32_t top_k;
  float scale = 5;          // logits lie in [-scale, scale)
  const char* suffix = "";  // of the shape
};

std::function<void()> MakeSample(const Cut& cut) {
  const size_t count = cut.count;
  auto logits = std::make_shared<AlignedFloats>(RandomFloats(kPanelRows * count, cut.scale)),
       scratch = std::make_shared<AlignedFloats>(SampleScratchFloats(count));
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

std::function<void()> MakeReference(const Cut& cut) {
  const size_t count = cut.count;
  auto logits = std::make_shared<AlignedFloats>(RandomFloats(kPanelRows * count, cut.scale)),
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
  constexpr size_t kLarge = 8000;
  std::vector<Cut> cuts;
  for (const size_t count : {kTiny.vocabulary_size, kOdd.vocabulary_size}) {
    cuts.insert(cuts.end(), {{"plain", count, 1, 1, 0},
                             {"temperature", count, 0.8f, 1, 0},
                             {"top_k", count, 1, 1, 10},
                             {"top_p", count, 1, 0.95f, 0}});
  }
  // Top-p keeps some 200 ids of the steep logits, of the flat ones nearly all.
  constexpr float kSteep = 60, kFlat = 0.01f;
  cuts.insert(cuts.end(), {{"plain", kLarge, 1, 1, 0},
                           {"top_p", kLarge, 1, 0.95f, 0, kSteep},
                           {"top_p", kLarge, 1, 0.95f, 0, kFlat, "-flat"}});
  for (const Cut& cut : cuts) {
    const double numbers = static_cast<double>(kPanelRows * cut.count);
    RegisterKernel({.family = "sample",
                    .op = cut.name,
                    .shape = std::to_string(cut.count) + cut.suffix,
                    .work = {.flop = kExpFlop * numbers,
                             .bytes = sizeof(float) * numbers,
                             .working_set_bytes = 2 * sizeof(float) * numbers,
                             .elements = kPanelRows},
                    .make = [=] { return MakeSample(cut); },
                    .reference = [=] { return MakeReference(cut); }});
  }
}

}  // namespace octavo::bench
