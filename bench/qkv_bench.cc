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

std::function<void()> MakeQkv(const Shape& shape, size_t rows) {
  // Few slots: the cache's size does not matter here, only that heads lie apart.
  constexpr size_t kSlots = 4;
  const size_t width = shape.width, head_size = shape.head_size(), num_heads = shape.num_heads;
  const size_t head_stride = kSlots * head_size * kPanelRows, panel_stride = num_heads * head_stride;
  auto matrix = std::make_shared<RandomMatrix>(width, 3 * width);
  auto x = std::make_shared<AlignedFloats>(RandomFloats(PanelFloats(rows, width)));
  auto q = std::make_shared<AlignedFloats>(PanelFloats(rows, width));
  auto cache = std::make_shared<AlignedFloats>(2 * NumPanels(rows) * panel_stride);
  return [=] {
    const HeadLayout keys = {cache->data(), panel_stride, head_stride};
    const HeadLayout values = {cache->data() + NumPanels(rows) * panel_stride, panel_stride, head_stride};
    Qkv(x->data(), rows, matrix->packed.matrix(), num_heads, head_size,
        {q->data(), width * kPanelRows, head_size * kPanelRows}, keys, values);
  };
}

std::function<void()> MakeReference(const Shape& shape, size_t rows) {
  const size_t width = shape.width;
  auto matrix = std::make_shared<RandomMatrix>(width, 3 * width);
  auto x = std::make_shared<AlignedFloats>(RandomFloats(rows * width));
  auto table = std::make_shared<AlignedFloats>(rows * 3 * width);
  return [=] {
    float* q = table->data();
    reference::Qkv(x->data(), rows, width, matrix->weight.data(), matrix->bias.data(), 3 * width, q, q + width,
                   q + 2 * width);
  };
}

void RegisterShape(const Shape& shape, size_t rows) {
  const size_t width = shape.width;
  const double read = static_cast<double>(3 * width * (width + 1) + rows * width),
               written = static_cast<double>(3 * rows * width);
  RegisterKernel({.family = "qkv",
                  .op = "decode",
                  .shape = fmt::format("{}-{}", shape.name, rows),
                  .work = {.flop = 6.0 * static_cast<double>(rows * width * width),
                           .bytes = sizeof(float) * read,
                           .working_set_bytes = sizeof(float) * (read + written)},
                  .make = [=] { return MakeQkv(shape, rows); },
                  .reference = [=] { return MakeReference(shape, rows); }});
}

}  // namespace

void RegisterQkv() {
  for (const size_t rows : {32, 64}) RegisterShape(kTiny, rows);
  RegisterShape(kSmall, 64);
  RegisterShape(kBaby, 64);
  RegisterShape(kOdd, 19);
}

}  // namespace octavo::bench
