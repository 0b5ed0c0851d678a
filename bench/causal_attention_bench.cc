// Causal attention over whole texts, from panels and from row-major tables.
#include <fmt/format.h>

#include <memory>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/causal_attention.h"
#include "kernels/reference/causal_attention.h"

namespace octavo::bench {
namespace {

double Flop(const Shape& shape) {
  return 2.0 * static_cast<double>(shape.width * shape.context_length * (shape.context_length + 1));
}

}  // namespace

void RegisterCausalAttention() {
  for (const Shape& shape : {kTiny, kSmall, kBaby}) {
    const size_t length = shape.context_length, heads = shape.num_heads, size = shape.head_size(), width = shape.width;
    const std::string name = fmt::format("{}-T{}-S{}", shape.name, length, size);
    RegisterKernel("causal_attention", "panels", name, {.flop = Flop(shape)}, [=] {
      auto qkv = std::make_shared<AlignedFloats>(RandomFloats(PanelFloats(length, 3 * width)));
      auto out = std::make_shared<AlignedFloats>(PanelFloats(length, width));
      auto scratch = std::make_shared<AlignedFloats>(PanelFloats(length, kPanelRows));
      return [=] { CausalAttention(qkv->data(), length, 0, heads, size, out->data(), nullptr, scratch->data()); };
    });
    RegisterKernel("causal_attention", "table", name, {.flop = Flop(shape)}, [=] {
      auto table = std::make_shared<AlignedFloats>(RandomFloats(length * 3 * width));
      auto out = std::make_shared<AlignedFloats>(length * width);
      auto scratch = std::make_shared<AlignedFloats>(CausalAttentionTableScratch(length, heads, size));
      return
          [=] { CausalAttentionTable(table->data(), 1, length, heads, size, out->data(), nullptr, scratch->data()); };
    });
    RegisterReference("causal_attention", "table", name, {.flop = Flop(shape)}, [=] {
      auto table = std::make_shared<AlignedFloats>(RandomFloats(length * 3 * width));
      auto out = std::make_shared<AlignedFloats>(length * width);
      auto scratch = std::make_shared<AlignedFloats>(length);
      return [=] {
        reference::CausalAttention<float>(table->data(), 1, length, heads, size, out->data(), nullptr, scratch->data());
      };
    });
  }
}

}  // namespace octavo::bench
