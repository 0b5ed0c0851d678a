// Layer norm of 64 rows.
#include <memory>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/layer_norm.h"
#include "kernels/panel.h"
#include "kernels/reference/layer_norm.h"

namespace octavo::bench {

void RegisterLayerNorm() {
  for (const Shape& shape : {kTiny, kBaby}) {
    constexpr size_t kRows = 64;
    const size_t width = shape.width;
    const Work work = {.elements = static_cast<double>(kRows * width)};
    const auto make = [=](const auto& run) {
      auto x = std::make_shared<AlignedFloats>(RandomFloats(PanelFloats(kRows, width)));
      auto out = std::make_shared<AlignedFloats>(PanelFloats(kRows, width));
      auto gain = std::make_shared<AlignedFloats>(RandomFloats(width)),
           bias = std::make_shared<AlignedFloats>(RandomFloats(width));
      return [=] { run(x->data(), kRows, width, gain->data(), bias->data(), 1e-5f, out->data()); };
    };
    RegisterKernel("layer_norm", "rows", shape.name, work, [=] { return make(LayerNorm); });
    RegisterReference("layer_norm", "rows", shape.name, work, [=] { return make(reference::LayerNorm<float>); });
  }
}

}  // namespace octavo::bench
