// The fixed cases of each kernel family: small odd shapes that take every path, and the large heads and lengths of users' models. Only what the
// contracts define is hashed, nothing of rows behind the last. Input and outputs lie in guarded memory as in the random cases.
#include <algorithm>
#include <array>
#include <deque>

#include "engine/check/case.h"
#include "engine/check/digests.h"
#include "engine/check/fixed.h"
#include "kernels/activation.h"
#include "kernels/causal_attention.h"
#include "kernels/decode_attention.h"
#include "kernels/embed.h"
#include "kernels/layer_norm.h"
#include "kernels/matmul.h"
#include "kernels/qkv.h"
#include "kernels/sample.h"
#include "kernels/softmax.h"
#include "kernels/strict_math.h"

namespace octavo::check {
namespace {

void AddRows(Panels& panels, size_t first, DigestHash& hash) {
  for (size_t r = first; r < panels.num_rows(); ++r) {
    for (size_t f = 0; f < panels.num_features(); ++f) hash.Add(panels.at(r, f));
  }
}

// A matrix, packed, from fixed inputs.
struct FixedMatrix {
  FixedMatrix(FixedInputs& inputs, size_t num_inputs, size_t num_outputs)
      : bias(inputs.Numbers(num_outputs, 0.5f)), packed(PackedFloats(num_inputs, num_outputs), kPanelAlignment) {
    PackMatrix(inputs.Numbers(num_inputs * num_outputs, 0.25f).data(), num_inputs, num_outputs, packed.data());
    matrix = {packed.data(), bias.data(), num_inputs, num_outputs};
  }
  std::vector<float> bias;
  Guarded<float> packed;
  PackedMatrix matrix;
};

// Every large head, one at the longest length; those of `tiny` and of odd models.
constexpr AttentionShape kAttentionShapes[] = {{300, 1, 64}, {45, 2, 80}, {70, 1, 96},
                                               {41, 1, 128}, {64, 4, 8},  {33, 3, 11}};

// Row-major q | k | v. Scores spread over a few units; the last shape's values are so small that products with weights underflow,
// to sums of -0 too.
std::vector<float> AttentionInputs(FixedInputs& inputs, const AttentionShape& shape) {
  const size_t width = shape.num_heads * shape.head_size;
  std::vector<float> table = inputs.Numbers(shape.length * 3 * width, 1);
  if (shape.head_size != 11) return table;
  for (size_t i = 0; i < table.size(); ++i) {
    if (i % (3 * width) >= 2 * width) table[i] = inputs.Below(4) == 0 ? -0x1p-149f : -0.0f;
  }
  return table;
}

}  // namespace

uint64_t DigestActivation() {
  DigestHash hash;
  FixedInputs inputs(101);
  std::vector<float> x = inputs.Numbers(200, 8);
  for (const float each : inputs.Magnitudes(101, -126, 100)) x.push_back(each);
  for (const float each : {0.0f, -0.0f, 0x1p-149f, -0x1p-149f, 0x1p-127f, -0x1p-127f}) x.push_back(each);
  std::vector<float> out(x.size());
  for (const ActivationKind kind : {ActivationKind::kGeluErf, ActivationKind::kGeluTanh, ActivationKind::kRelu}) {
    Activate(kind, x.data(), x.size(), out.data());
    for (const float each : out) hash.Add(each);
  }
  return hash.value();
}

uint64_t DigestCausalAttention() {
  DigestHash hash;
  FixedInputs inputs(102);
  for (const AttentionShape& shape : kAttentionShapes) {
    const auto [length, heads, size] = shape;
    const size_t width = heads * size;
    Panels qkv(AttentionInputs(inputs, shape), length, 3 * width), out(length, width);
    Guarded<float> weights(heads * length * length), scratch(PanelFloats(length, kPanelRows), kPanelAlignment);
    // Of the longest only the last panels, without weights.
    const bool longest = length == 300;
    const size_t first_panel = longest ? NumPanels(length) - 2 : 0;
    CausalAttention(qkv.data(), length, first_panel, heads, size, out.data(), longest ? nullptr : weights.data(),
                    scratch.data());
    AddRows(out, first_panel * kPanelRows, hash);
    for (size_t i = 0; !longest && i < weights.size(); ++i) hash.Add(weights[i]);
  }
  return hash.value();
}

uint64_t DigestDecodeAttention() {
  DigestHash hash;
  FixedInputs inputs(103);
  for (const auto& [slots, heads, size] : kAttentionShapes) {
    const size_t width = heads * size, stride = slots * size * kPanelRows,
                 pair_stride = slots * NumPairs(size) * kPanelRows, newest = slots / 3;
    std::vector<uint32_t> places(2 * slots);
    FillPlaces(slots, size % 2 == 0, places.data());
    Panels q(inputs.Numbers(kPanelRows * width, 1), kPanelRows, width), out(kPanelRows, width);
    Guarded<float> parts[2] = {Guarded<float>(heads * stride, kPanelAlignment),
                               Guarded<float>(heads * stride, kPanelAlignment)};
    Guarded<uint32_t> pairs[2] = {Guarded<uint32_t>(heads * pair_stride, kPanelAlignment),
                                  Guarded<uint32_t>(heads * pair_stride, kPanelAlignment)};
    Guarded<float> panel(width * kPanelRows, kPanelAlignment);
    for (size_t part = 0; part < 2; ++part) {
      for (size_t slot = 0; slot < slots; ++slot) {
        for (size_t i = 0; i < panel.size(); ++i) panel[i] = inputs.Number(1);
        for (size_t h = 0; h < heads; ++h) {
          std::copy_n(panel.data() + h * size * kPanelRows, size * kPanelRows,
                      parts[part].data() + h * stride + slot * size * kPanelRows);
        }
        StorePairs(panel.data(), heads, size, pairs[part].data() + slot * NumPairs(size) * kPanelRows, pair_stride);
      }
    }
    int32_t lengths[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r) lengths[r] = static_cast<int32_t>(r == 5 ? slots : 1 + inputs.Below(slots));
    Guarded<float> scratch(kPanelRows * slots, kPanelAlignment);
    DecodeAttention(q.data(), DecodeCache{parts[0].data(), parts[1].data(), stride, slots, newest, places.data()},
                    lengths, heads, size, out.data(), scratch.data());
    AddRows(out, 0, hash);
    DecodeAttention(q.data(),
                    PairedDecodeCache{pairs[0].data(), pairs[1].data(), pair_stride, slots, newest, places.data()},
                    lengths, heads, size, out.data(), scratch.data());
    AddRows(out, 0, hash);
  }
  return hash.value();
}

uint64_t DigestEmbed() {
  DigestHash hash;
  FixedInputs inputs(104);
  constexpr size_t kRows = 35, kWidth = 33, kVocabulary = 20, kContext = 40, kPadded = NumPanels(kRows) * kPanelRows;
  Panels out(kRows, kWidth);
  const std::vector<float> tokens = inputs.Magnitudes(kVocabulary * kWidth, -30, 4),
                           positions = inputs.Numbers(kContext * kWidth, 1);
  const std::vector<int32_t> token_ids = inputs.Ids(kPadded, kVocabulary), seats = inputs.Ids(kPadded, kContext);
  Embed(token_ids.data(), seats.data(), kRows, tokens.data(), positions.data(), kWidth, out.data());
  AddRows(out, 0, hash);
  return hash.value();
}

uint64_t DigestLayerNorm() {
  DigestHash hash;
  FixedInputs inputs(105);
  for (const size_t width : {1, 3, 12, 33, 65, 128}) {
    for (const float epsilon : kEpsilons) {
      constexpr size_t kRows = 17;
      Panels x(inputs.Numbers(kRows * width, 2, 0.5f), kRows, width), out(kRows, width);
      const std::vector<float> gain = inputs.Numbers(width, 2), bias = inputs.Numbers(width, 1);
      LayerNorm(x.data(), kRows, width, gain.data(), bias.data(), epsilon, out.data());
      AddRows(out, 0, hash);
    }
  }
  return hash.value();
}

uint64_t DigestMatMul() {
  struct Shape {
    size_t rows, inputs, outputs;
  };
  DigestHash hash;
  FixedInputs inputs(106);
  for (const Shape& shape :
       {Shape{1, 33, 65}, Shape{4, 20, 7}, Shape{5, 128, 48}, Shape{17, 36, 61}, Shape{70, 17, 33}}) {
    for (const Epilogue epilogue :
         {Epilogue::kStore, Epilogue::kAddResidual, Epilogue::kGeluErf, Epilogue::kGeluTanh, Epilogue::kRelu}) {
      const FixedMatrix m(inputs, shape.inputs, shape.outputs);
      Panels x(inputs.Numbers(shape.rows * shape.inputs, 2), shape.rows, shape.inputs);
      Panels out(inputs.Numbers(shape.rows * shape.outputs, 2), shape.rows, shape.outputs);
      MatMul(x.data(), shape.rows, m.matrix, epilogue, out.data());
      AddRows(out, 0, hash);
    }
  }
  return hash.value();
}

uint64_t DigestQkv() {
  struct Shape {
    size_t rows, heads, size;
  };
  DigestHash hash;
  FixedInputs inputs(107);
  for (const auto& [rows, heads, size] :
       {Shape{3, 2, 64}, Shape{5, 1, 80}, Shape{16, 1, 96}, Shape{2, 1, 128}, Shape{33, 3, 11}, Shape{17, 4, 8}}) {
    const size_t width = heads * size, head_stride = size * kPanelRows, panel_stride = heads * head_stride;
    const FixedMatrix m(inputs, width, 3 * width);
    Panels x(inputs.Numbers(rows * width, 2), rows, width);
    std::deque<Panels> parts;  // heads side by side are panels
    HeadLayout layouts[3];
    for (HeadLayout& layout : layouts) layout = {parts.emplace_back(rows, width).data(), panel_stride, head_stride};
    Qkv(x.data(), rows, m.matrix, heads, size, layouts[0], layouts[1], layouts[2]);
    for (Panels& part : parts) AddRows(part, 0, hash);
  }
  return hash.value();
}

uint64_t DigestSample() {
  constexpr float kTemperatures[] = {1, 0, 0.75f, 2, 1}, kTopP[] = {1, 0.9375f, 1, 0.5f};
  DigestHash hash;
  FixedInputs inputs(108);
  for (const int32_t count : {2, 33, 65}) {
    for (const bool plain : {true, false}) {
      Panels logits(inputs.Numbers(kPanelRows * static_cast<size_t>(count), 4), kPanelRows, static_cast<size_t>(count));
      std::array<float, kPanelRows> temperature, top_p, uniform;
      std::array<int32_t, kPanelRows> top_k, ids;
      Guarded<float> scratch(kPanelRows * static_cast<size_t>(count), kPanelAlignment);
      for (size_t r = 0; r < kPanelRows; ++r) {
        temperature[r] = plain ? 1 : kTemperatures[r % 5];
        top_p[r] = plain ? 1 : kTopP[r % 4];
        top_k[r] = plain ? 0 : static_cast<int32_t>(r % 3 * 7);
      }
      for (size_t draw = 0; draw < 25; ++draw) {
        for (float& each : uniform) each = static_cast<float>(inputs.Below(1 << 24)) * 0x1p-24f;
        Sample(logits.data(), static_cast<size_t>(count),
               {temperature.data(), top_k.data(), top_p.data(), uniform.data()}, scratch.data(), ids.data());
        for (const int32_t id : ids) hash.Add(id);
      }
    }
  }
  return hash.value();
}

uint64_t DigestSoftmax() {
  DigestHash hash;
  FixedInputs inputs(109);
  for (const size_t count : {1, 2, 33, 65, 300}) {
    for (const float scale : {2.0f, 64.0f}) {
      constexpr size_t kRows = 17, kPadded = NumPanels(kRows) * kPanelRows;
      Panels x(inputs.Numbers(kRows * count, scale), kRows, count), p(kRows, count), log_p(kRows, count);
      std::vector<float> chosen(kPadded);
      Softmax(x.data(), kRows, count, p.data());
      LogSoftmax(x.data(), kRows, count, log_p.data());
      LogProbabilityOf(x.data(), kRows, count, inputs.Ids(kPadded, count).data(), chosen.data());
      AddRows(p, 0, hash);
      AddRows(log_p, 0, hash);
      for (size_t r = 0; r < kRows; ++r) hash.Add(chosen[r]);
    }
  }
  return hash.value();
}

}  // namespace octavo::check
