// Token and position embeddings of 64 rows.
#include <algorithm>
#include <memory>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/embed.h"
#include "kernels/panel.h"
#include "kernels/reference/embed.h"

namespace octavo::bench {

void RegisterEmbed() {
  for (const Shape& shape : {kTiny, kSmall, kBaby, kOdd}) {
    constexpr size_t kRows = 64;
    const size_t width = shape.width;
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
    const double numbers = static_cast<double>(kRows * width);
    // Steps of 37 and 11 meet this many different rows of the tables.
    const double table =
        static_cast<double>((std::min(kRows, shape.vocabulary_size) + std::min(kRows, shape.context_length)) * width);
    const Kernel kernel = {.family = "embed",
                           .op = "rows",
                           .shape = shape.name,
                           .work = {.flop = numbers,
                                    .bytes = 2 * sizeof(float) * numbers,
                                    .working_set_bytes = sizeof(float) * (table + numbers),
                                    .elements = numbers},
                           .make = [=] { return make(Embed); },
                           .reference = [=] { return make(reference::Embed<float>); }};
    RegisterKernel(kernel);
    if (shape.width == kBaby.width) RegisterCold(kernel);
  }
}

}  // namespace octavo::bench
