// Decode attention of 16 sequences over all positions of the context, layer by layer as generation does: the cache streams from L2 (tiny) or
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

// Keys and values that a lane reads at positions 0 … context - 1, in all layers.
double BytesPerLane(const Shape& shape) {
  const size_t positions = shape.context_length * (shape.context_length + 1) / 2;
  return static_cast<double>(2 * sizeof(float) * shape.num_layers * shape.width * positions);
}

}  // namespace

void RegisterDecodeAttention() {
  for (const Shape& shape : {kTiny, kSmall}) {
    const size_t slots = shape.context_length, heads = shape.num_heads, size = shape.head_size();
    const size_t head_stride = slots * size * kPanelRows, layer_stride = heads * head_stride;
    const double lanes = kPanelRows;
    const Work work = {.l2_bytes = lanes * BytesPerLane(shape), .elements = lanes * static_cast<double>(slots)};
    RegisterKernel("decode_attention", "context", shape.name, work, [=] {
      auto keys = std::make_shared<AlignedFloats>(RandomFloats(shape.num_layers * layer_stride));
      auto values = std::make_shared<AlignedFloats>(RandomFloats(shape.num_layers * layer_stride));
      auto q = std::make_shared<AlignedFloats>(RandomFloats(shape.width * kPanelRows));
      auto out = std::make_shared<AlignedFloats>(shape.width * kPanelRows);
      auto scratch = std::make_shared<AlignedFloats>(slots * kPanelRows);
      auto places = std::make_shared<std::vector<uint32_t>>(2 * slots);
      FillPlaces(slots, 2 * sizeof(float) * shape.num_layers * layer_stride <= kScatteredBytes, places->data());
      return [=] {
        for (size_t position = 0; position < slots; ++position) {
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
    });
  }
  const size_t width = kTiny.width, slots = kTiny.context_length;
  RegisterReference("decode_attention", "context", "tiny",
                    {.l2_bytes = BytesPerLane(kTiny), .elements = static_cast<double>(slots)}, [=] {
                      auto cache = std::make_shared<AlignedFloats>(RandomFloats(2 * kTiny.num_layers * slots * width));
                      auto out = std::make_shared<AlignedFloats>(width);
                      auto scratch = std::make_shared<AlignedFloats>(slots);
                      return [=] {
                        for (size_t t = 0; t < slots; ++t) {
                          for (size_t layer = 0; layer < kTiny.num_layers; ++layer) {
                            const float* keys = cache->data() + 2 * layer * slots * width;
                            reference::DecodeAttention<float>(keys, keys, keys + slots * width, width, t + 1,
                                                              kTiny.num_heads, kTiny.head_size(), out->data(), nullptr,
                                                              0, scratch->data());
                          }
                        }
                      };
                    });
}

}  // namespace octavo::bench
