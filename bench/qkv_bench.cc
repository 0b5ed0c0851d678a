// The fused query, key, value product into a cache, at the shapes of models.
#include <fmt/format.h>

#include <memory>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/panel.h"
#include "kernels/qkv.h"
#include "kernels/reference/qkv.h"

namespace octavo::bench {
namespace {

void RegisterShape(const Shape& shape, size_t rows) {
  const size_t width = shape.width;
  const Work work = {.flop = 6.0 * static_cast<double>(rows * width * width)};
  const std::string name = fmt::format("{}-{}", shape.name, rows);
  RegisterKernel("qkv", "decode", name, work, [=] {
    // Few slots: the cache's size does not matter here, only that heads lie apart.
    constexpr size_t kSlots = 4;
    const size_t head_stride = kSlots * shape.head_size() * kPanelRows, panel_stride = shape.num_heads * head_stride;
    auto matrix = std::make_shared<RandomMatrix>(width, 3 * width);
    auto x = std::make_shared<AlignedFloats>(RandomFloats(PanelFloats(rows, width)));
    auto q = std::make_shared<AlignedFloats>(PanelFloats(rows, width));
    auto cache = std::make_shared<AlignedFloats>(2 * NumPanels(rows) * panel_stride);
    return [=] {
      const HeadLayout keys = {cache->data(), panel_stride, head_stride};
      const HeadLayout values = {cache->data() + NumPanels(rows) * panel_stride, panel_stride, head_stride};
      Qkv(x->data(), rows, matrix->packed.matrix(), shape.num_heads, shape.head_size(),
          {q->data(), width * kPanelRows, shape.head_size() * kPanelRows}, keys, values);
    };
  });
}

}  // namespace

void RegisterQkv() {
  for (const size_t rows : {32, 64}) RegisterShape(kTiny, rows);
  RegisterShape(kBaby, 64);
  const size_t width = kTiny.width, rows = 32;
  RegisterReference("qkv", "decode", "tiny-32", {.flop = 6.0 * static_cast<double>(rows * width * width)}, [=] {
    auto matrix = std::make_shared<RandomMatrix>(width, 3 * width);
    auto x = std::make_shared<AlignedFloats>(RandomFloats(rows * width));
    auto table = std::make_shared<AlignedFloats>(rows * 3 * width);
    return [=] {
      float* q = table->data();
      reference::Qkv(x->data(), rows, width, matrix->weight.data(), matrix->bias.data(), 3 * width, q, q + width,
                     q + 2 * width);
    };
  });
}

}  // namespace octavo::bench
