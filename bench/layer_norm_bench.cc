// Layer norm of 64 rows.
#include <memory>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/layer_norm.h"
#include "kernels/panel.h"
#include "kernels/reference/layer_norm.h"

namespace octavo::bench {

void RegisterLayerNorm() {
  for (const Shape& shape : {kTiny, kSmall, kBaby, kOdd}) {
    constexpr size_t kRows = 64;
    const size_t width = shape.width;
    const double numbers = static_cast<double>(kRows * width), table = static_cast<double>(2 * width);
    const auto make = [=](const auto& run) {
      auto x = std::make_shared<AlignedFloats>(RandomFloats(PanelFloats(kRows, width)));
      auto out = std::make_shared<AlignedFloats>(PanelFloats(kRows, width));
      auto gain = std::make_shared<AlignedFloats>(RandomFloats(width)),
           bias = std::make_shared<AlignedFloats>(RandomFloats(width));
      return [=] { run(x->data(), kRows, width, gain->data(), bias->data(), 1e-5f, out->data()); };
    };
    const Kernel kernel = {.family = "layer_norm",
                           .op = "rows",
                           .shape = shape.name,
                           .work = {.flop = 8 * numbers,
                                    .bytes = sizeof(float) * (numbers + table),
                                    .working_set_bytes = sizeof(float) * (2 * numbers + table),
                                    .elements = numbers},
                           .make = [=] { return make(LayerNorm); },
                           .reference = [=] { return make(reference::LayerNorm<float>); }};
    RegisterKernel(kernel);
    if (shape.width == kBaby.width) RegisterCold(kernel);
  }
}

}  // namespace octavo::bench
