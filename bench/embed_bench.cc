// Token and position embeddings of 64 rows.
#include <memory>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/embed.h"
#include "kernels/panel.h"
#include "kernels/reference/embed.h"

namespace octavo::bench {

void RegisterEmbed() {
  for (const Shape& shape : {kTiny, kBaby}) {
    constexpr size_t kRows = 64;
    const size_t width = shape.width;
    const Work work = {.elements = static_cast<double>(kRows * width)};
    const auto make = [=](const auto& run) {
      auto tokens = std::make_shared<std::vector<int32_t>>(kRows),
           positions = std::make_shared<std::vector<int32_t>>(kRows);
      for (size_t r = 0; r < kRows; ++r) {
        (*tokens)[r] = static_cast<int32_t>(r * 37 % shape.vocabulary_size);
        (*positions)[r] = static_cast<int32_t>(r * 11 % shape.context_length);
      }
      auto token_table = std::make_shared<AlignedFloats>(RandomFloats(shape.vocabulary_size * width));
      auto position_table = std::make_shared<AlignedFloats>(RandomFloats(shape.context_length * width));
      auto out = std::make_shared<AlignedFloats>(PanelFloats(kRows, width));
      return [=] {
        run(tokens->data(), positions->data(), kRows, token_table->data(), position_table->data(), width, out->data());
      };
    };
    RegisterKernel("embed", "rows", shape.name, work, [=] { return make(Embed); });
    RegisterReference("embed", "rows", shape.name, work, [=] { return make(reference::Embed<float>); });
  }
}

}  // namespace octavo::bench
