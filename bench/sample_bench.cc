// Drawing from 65 logits, 16 rows: plain, with top-k, with top-p. An element is a draw.
#include <memory>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/panel.h"
#include "kernels/reference/sample.h"
#include "kernels/sample.h"

namespace octavo::bench {

void RegisterSample() {
  struct Cut {
    const char* name;
    float temperature, top_p;
    int32_t top_k;
  };
  const size_t count = kTiny.vocabulary_size;
  for (const Cut& cut :
       {Cut{"plain", 1, 1, 0}, Cut{"temperature", 0.8f, 1, 0}, Cut{"top_k", 1, 1, 10}, Cut{"top_p", 1, 0.9f, 0}}) {
    RegisterKernel("sample", cut.name, "65", {.elements = kPanelRows}, [=] {
      auto logits = std::make_shared<AlignedFloats>(RandomFloats(kPanelRows * count, 5)),
           scratch = std::make_shared<AlignedFloats>(*logits);
      auto temperature = std::make_shared<std::vector<float>>(kPanelRows, cut.temperature);
      auto top_p = std::make_shared<std::vector<float>>(kPanelRows, cut.top_p),
           uniform = std::make_shared<std::vector<float>>();
      for (size_t r = 0; r < kPanelRows; ++r) uniform->push_back(static_cast<float>(r) / kPanelRows);
      auto top_k = std::make_shared<std::vector<int32_t>>(kPanelRows, cut.top_k),
           ids = std::make_shared<std::vector<int32_t>>(kPanelRows);
      return [=] {
        Sample(logits->data(), count, {temperature->data(), top_k->data(), top_p->data(), uniform->data()},
               scratch->data(), ids->data());
      };
    });
    RegisterReference("sample", cut.name, "65", {.elements = 1}, [=] {
      auto logits = std::make_shared<AlignedFloats>(RandomFloats(count, 5)),
           scratch = std::make_shared<AlignedFloats>(2 * count);
      auto order = std::make_shared<std::vector<int32_t>>(count);
      return [=] {
        benchmark::DoNotOptimize(reference::Sample(logits->data(), count, cut.temperature,
                                                   static_cast<uint64_t>(cut.top_k), cut.top_p, 0.5f, scratch->data(),
                                                   order->data()));
      };
    });
  }
}

}  // namespace octavo::bench
