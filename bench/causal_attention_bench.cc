// Causal attention over whole texts, from panels and from row-major tables.
#include <fmt/format.h>

#include <memory>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/causal_attention.h"
#include "kernels/reference/causal_attention.h"

namespace octavo::bench {
namespace {

Work WorkOf(const Shape& shape, size_t scratch_floats) {
  const double numbers = static_cast<double>(shape.width * shape.context_length);
  return {.flop = 2 * numbers * static_cast<double>(shape.context_length + 1),
          .bytes = 3 * sizeof(float) * numbers,
          .working_set_bytes = sizeof(float) * (4 * numbers + static_cast<double>(scratch_floats))};
}

std::function<void()> MakePanels(const Shape& shape) {
  const size_t length = shape.context_length, heads = shape.num_heads, size = shape.head_size(), width = shape.width;
  auto qkv = std::make_shared<AlignedFloats>(RandomFloats(PanelFloats(length, 3 * width)));
  auto out = std::make_shared<AlignedFloats>(PanelFloats(length, width));
  auto scratch = std::make_shared<AlignedFloats>(PanelFloats(length, kPanelRows));
  return [=] { CausalAttention(qkv->data(), length, 0, heads, size, out->data(), nullptr, scratch->data()); };
}

std::function<void()> MakeTable(const Shape& shape) {
  const size_t length = shape.context_length, heads = shape.num_heads, size = shape.head_size(), width = shape.width;
  auto table = std::make_shared<AlignedFloats>(RandomFloats(length * 3 * width));
  auto out = std::make_shared<AlignedFloats>(length * width);
  auto scratch = std::make_shared<AlignedFloats>(CausalAttentionTableScratch(length, heads, size));
  return [=] { CausalAttentionTable(table->data(), 1, length, heads, size, out->data(), nullptr, scratch->data()); };
}

std::function<void()> MakeReference(const Shape& shape) {
  const size_t length = shape.context_length, heads = shape.num_heads, size = shape.head_size(), width = shape.width;
  auto table = std::make_shared<AlignedFloats>(RandomFloats(length * 3 * width));
  auto out = std::make_shared<AlignedFloats>(length * width);
  auto scratch = std::make_shared<AlignedFloats>(length);
  return [=] {
    reference::CausalAttention<float>(table->data(), 1, length, heads, size, out->data(), nullptr, scratch->data());
  };
}

}  // namespace

void RegisterCausalAttention() {
  for (const Shape& shape : {kTiny, kSmall, kBaby, kOdd}) {
    const size_t length = shape.context_length;
    const std::string name = fmt::format("{}-T{}-S{}", shape.name, length, shape.head_size());
    RegisterKernel({.family = "causal_attention",
                    .op = "panels",
                    .shape = name,
                    .work = WorkOf(shape, PanelFloats(length, kPanelRows)),
                    .make = [=] { return MakePanels(shape); },
                    .reference = [=] { return MakeReference(shape); }});
    RegisterKernel({.family = "causal_attention",
                    .op = "table",
                    .shape = name,
                    .work = WorkOf(shape, CausalAttentionTableScratch(length, shape.num_heads, shape.head_size())),
                    .make = [=] { return MakeTable(shape); },
                    .reference = [=] { return MakeReference(shape); }});
  }
}

}  // namespace octavo::bench
