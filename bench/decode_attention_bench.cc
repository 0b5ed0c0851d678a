// Decode attention of 16 sequences over the positions of the context, layer by layer as generation does: the cache streams from L2 (tiny) or
// beyond. An element is a character.
#include <memory>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/decode_attention.h"
#include "kernels/panel.h"
#include "kernels/reference/decode_attention.h"

namespace octavo::bench {
namespace {

// Every so many positions are timed: of a large model some, for all of them read 10 GB.
size_t Step(const Shape& shape) { return shape.width >= kBaby.width ? 32 : 1; }

std::function<void()> MakeDecode(const Shape& shape) {
  const size_t slots = shape.context_length, step = Step(shape), heads = shape.num_heads, size = shape.head_size();
  const size_t head_stride = slots * size * kPanelRows, layer_stride = heads * head_stride;
  auto keys = std::make_shared<AlignedFloats>(RandomFloats(shape.num_layers * layer_stride));
  auto values = std::make_shared<AlignedFloats>(RandomFloats(shape.num_layers * layer_stride));
  auto q = std::make_shared<AlignedFloats>(RandomFloats(shape.width * kPanelRows));
  auto out = std::make_shared<AlignedFloats>(shape.width * kPanelRows);
  auto scratch = std::make_shared<AlignedFloats>(slots * kPanelRows);
  auto places = std::make_shared<std::vector<uint32_t>>(2 * slots);
  FillPlaces(slots, 2 * sizeof(float) * shape.num_layers * layer_stride <= kScatteredBytes, places->data());
  return [=] {
    for (size_t position = step - 1; position < slots; position += step) {
      int32_t lengths[kPanelRows];
      for (int32_t& length : lengths) length = static_cast<int32_t>(position + 1);
      for (size_t layer = 0; layer < shape.num_layers; ++layer) {
        const DecodeCache cache = {keys->data() + layer * layer_stride,
                                   values->data() + layer * layer_stride,
                                   head_stride,
                                   slots,
                                   position,
                                   places->data()};
        DecodeAttention(q->data(), cache, lengths, heads, size, out->data(), scratch->data());
      }
    }
  };
}

std::function<void()> MakeReference(const Shape& shape) {
  const size_t slots = shape.context_length, step = Step(shape), width = shape.width, table = slots * width;
  auto cache = std::make_shared<AlignedFloats>(RandomFloats(kPanelRows * 2 * shape.num_layers * table));
  auto out = std::make_shared<AlignedFloats>(width);
  auto scratch = std::make_shared<AlignedFloats>(slots);
  return [=] {
    for (size_t position = step - 1; position < slots; position += step) {
      const float* keys = cache->data();
      for (size_t i = 0; i < kPanelRows * shape.num_layers; ++i, keys += 2 * table) {
        reference::DecodeAttention<float>(keys, keys, keys + table, width, position + 1, shape.num_heads,
                                          shape.head_size(), out->data(), nullptr, 0, scratch->data());
      }
    }
  };
}

}  // namespace

void RegisterDecodeAttention() {
  for (const Shape& shape : {kTiny, kSmall, kBaby, kOdd}) {
    const size_t context = shape.context_length, step = Step(shape), num_positions = context / step;
    // Keys and values of one position, all layers and lanes.
    const double numbers = static_cast<double>(2 * shape.num_layers * shape.width * kPanelRows);
    const double positions_read = static_cast<double>(step * num_positions * (num_positions + 1) / 2);
    // Each step reads what is there so far, and comes back to it in the next step. In eight parts, each as if all of it were the first and shortest.
    constexpr size_t kParts = 8;
    std::vector<Reads> reads;
    for (size_t part = 0; part < kParts; ++part) {
      const size_t begin = part * num_positions / kParts, end = (part + 1) * num_positions / kParts;
      const auto sum_below = [](size_t n) { return n * (n + 1) / 2; };
      const auto positions = static_cast<double>(step * (sum_below(end) - sum_below(begin)));
      reads.push_back(
          {sizeof(float) * numbers * positions, sizeof(float) * numbers * static_cast<double>(step * (begin + 1))});
    }
    RegisterKernel({.family = "decode_attention",
                    .op = "context",
                    .shape = shape.name,
                    .work = {.flop = 2 * numbers * positions_read,
                             .bytes = sizeof(float) * numbers * positions_read,
                             // As the average byte is read.
                             .working_set_bytes = sizeof(float) * numbers * static_cast<double>(context) * 2 / 3,
                             .elements = static_cast<double>(kPanelRows * num_positions),
                             .reads = reads},
                    .make = [=] { return MakeDecode(shape); },
                    .reference = [=] { return MakeReference(shape); }});
  }
}

}  // namespace octavo::bench
