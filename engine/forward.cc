// The forward pass in the vector kernels; see forward.h.
#include "engine/forward.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <new>
#include <numeric>
#include <type_traits>

#include "engine/fail.h"
#include "engine/packed_weights.h"
#include "engine/parallel.h"
#include "kernels/causal_attention.h"
#include "kernels/decode_attention.h"
#include "kernels/embed.h"
#include "kernels/layer_norm.h"
#include "kernels/matmul.h"
#include "kernels/qkv.h"

namespace octavo {
namespace {

void Resize(Workspace& work, size_t rows, const ModelConfig& config) {
  work.x.resize(PanelFloats(rows, config.width));
  work.normed.resize(PanelFloats(rows, config.width));
  work.mixed.resize(PanelFloats(rows, config.width));
  work.inner.resize(PanelFloats(rows, config.inner_width));
}

Epilogue ActivationEpilogue(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kGeluErf:
      return Epilogue::kGeluErf;
    case ActivationKind::kGeluTanh:
      return Epilogue::kGeluTanh;
    case ActivationKind::kRelu:
      break;
  }
  return Epilogue::kRelu;
}

void Normalize(const Norm& norm, const ModelConfig& config, const float* x, size_t rows, float* out) {
  LayerNorm(x, rows, config.width, norm.gain.data(), norm.bias.data(), config.layer_norm_epsilon, out);
}

// Shares range(piece, begin, end) over [0, count), or runs it whole where there is no team.
template <typename Range>
void Share(const Team* team, size_t count, double seconds, const Range& range) {
  if (team) return team->Share(count, seconds, range);
  range(size_t{0}, size_t{0}, count);
}

size_t MaxPieces(const Team* team) { return team ? team->max_pieces() : 1; }

// What a thread does in a second, roughly, to tell what is worth sharing.
constexpr double kFlopPerSecond = 1e11, kAttentionFlopPerSecond = 4e10, kBytesPerSecond = 2e10;

double ProductSeconds(const PackedMatrix& matrix, size_t rows) {
  const double weights = static_cast<double>(matrix.num_inputs) * static_cast<double>(matrix.num_outputs);
  return std::max(2 * static_cast<double>(rows) * weights / kFlopPerSecond, sizeof(float) * weights / kBytesPerSecond);
}

void Multiply(const Team* team, const float* x, size_t rows, const PackedMatrix& matrix, Epilogue epilogue,
              float* out) {
  Share(team, NumTiles(matrix.num_outputs), ProductSeconds(matrix, rows), [&](size_t, size_t begin, size_t end) {
    MatMul(x, rows, matrix, epilogue, out, {begin, end});
  });
}

void MultiplyQkv(const Team* team, const float* x, size_t rows, const PackedMatrix& matrix, const ModelConfig& config,
                 const HeadLayout& q, const HeadLayout& k, const HeadLayout& v) {
  Share(team, NumTiles(matrix.num_outputs), ProductSeconds(matrix, rows), [&](size_t, size_t begin, size_t end) {
    Qkv(x, rows, matrix, config.num_heads, config.head_size(), q, k, v, {begin, end});
  });
}

// What follows attention in a block: x += mixed · c_proj; x += activation(layer_norm(x) · c_fc) · mlp.c_proj. Panels from `panel` on.
void FinishBlock(const Model& model, const Team* team, size_t layer, size_t rows, size_t panel, Workspace& work) {
  const ModelConfig& config = model.config();
  const PackedLayer& packed = model.packed().layers[layer];
  const size_t skip = panel * kPanelRows * config.width, live = rows - panel * kPanelRows;
  float* x = work.x.data() + skip;
  float* normed = work.normed.data() + skip;
  Multiply(team, work.mixed.data() + skip, live, packed.attn_proj.matrix(), Epilogue::kAddResidual, x);
  Normalize(model.weights().layers[layer].ln_2, config, x, live, normed);
  Multiply(team, normed, live, packed.c_fc.matrix(), ActivationEpilogue(config.activation), work.inner.data());
  Multiply(team, work.inner.data(), live, packed.mlp_proj.matrix(), Epilogue::kAddResidual, x);
}

// Final norm and head of `rows` rows from `x` on.
float* Head(const Model& model, const Team* team, const float* x, size_t rows, Workspace& work) {
  work.logits.resize(PanelFloats(rows, model.config().vocabulary_size));
  Normalize(model.weights().ln_f, model.config(), x, rows, work.normed.data());
  Multiply(team, work.normed.data(), rows, model.packed().lm_head.matrix(), Epilogue::kStore, work.logits.data());
  return work.logits.data();
}

// Attention of the panels of a text from `first_panel` on. Where pieces do not reach the last panel, they read a shorter text.
void AttendText(const Team* team, const float* table, size_t rows, size_t first_panel, const ModelConfig& config,
                float* weights, Workspace& work) {
  const size_t panels = NumPanels(rows) - first_panel, scratch = PanelFloats(rows, kPanelRows);
  work.scratch.resize(scratch * MaxPieces(team));
  const double flop = 4 * static_cast<double>(config.width * panels * kPanelRows) * static_cast<double>(rows);
  Share(weights ? nullptr : team, panels, flop / kAttentionFlopPerSecond, [&](size_t piece, size_t begin, size_t end) {
    CausalAttention(table, std::min(rows, (first_panel + end) * kPanelRows), first_panel + begin, config.num_heads,
                    config.head_size(), work.mixed.data(), weights, work.scratch.data() + piece * scratch);
  });
}

}  // namespace

TextPass::TextPass(const Model& model, const Team* team, KvPrecision kv)
    : model_(model), team_(team), kv_(kv), tables_(model.config().num_layers) {}

void TextPass::Read(std::span<const TokenId> tokens, size_t first_needed, float* weights) {
  const ModelConfig& config = model_.config();
  const Weights& parameters = model_.weights();
  const size_t rows = tokens.size(), width = config.width, heads = config.num_heads, size = config.head_size();
  const size_t panel_stride = 3 * width * kPanelRows, padded = NumPanels(rows) * kPanelRows;
  assert(rows > 0 && rows <= config.context_length && first_needed < rows);
  length_ = rows;
  Resize(work_, rows, config);
  tokens_.assign(padded, 0);
  positions_.assign(padded, 0);
  std::copy(tokens.begin(), tokens.end(), tokens_.begin());
  std::iota(positions_.begin(), positions_.begin() + static_cast<std::ptrdiff_t>(rows), 0);

  Embed(tokens_.data(), positions_.data(), rows, parameters.wte.data(), parameters.wpe.data(), width, work_.x.data());
  for (size_t i = 0; i < config.num_layers; ++i) {
    tables_[i].resize(PanelFloats(rows, 3 * width));
    float* table = tables_[i].data();
    const size_t first_panel = i + 1 == config.num_layers ? first_needed / kPanelRows : 0;
    const auto part = [&](size_t number) {
      return HeadLayout{table + number * width * kPanelRows, panel_stride, size * kPanelRows};
    };
    Normalize(parameters.layers[i].ln_1, config, work_.x.data(), rows, work_.normed.data());
    MultiplyQkv(team_, work_.normed.data(), rows, model_.packed().layers[i].c_attn.matrix(), config, part(0), part(1),
                part(2));
    for (size_t panel = 0; kv_ == KvPrecision::kBf16 && panel < NumPanels(rows); ++panel)
      RoundToBfloat16(table + panel * panel_stride + width * kPanelRows, 2 * width);
    AttendText(team_, table, rows, first_panel, config, weights, work_);
    FinishBlock(model_, team_, i, rows, first_panel, work_);
    if (weights) weights += heads * rows * rows;
  }
}

const float* TextPass::Logits(size_t panel) {
  const size_t begin = panel * kPanelRows;
  return Head(model_, team_, work_.x.data() + begin * model_.config().width, std::min(length_ - begin, kPanelRows),
              work_);
}

const float* TextPass::Table(size_t layer, size_t panel) const {
  return tables_[layer].data() + panel * 3 * model_.config().width * kPanelRows;
}

StepPass::StepPass(const Model& model, size_t num_panels, const Team* team, KvPrecision kv)
    : model_(model), team_(team), num_panels_(num_panels), kv_(kv) {
  const ModelConfig& config = model.config();
  const size_t bytes = CacheBytes(config, num_panels, kv), count = bytes / 2 / sizeof(float);
  Resize(work_, num_lanes(), config);
  q_.resize(PanelFloats(num_lanes(), config.width));
  work_.scratch.resize(PanelFloats(config.context_length, kPanelRows) * MaxPieces(team));
  try {
    if (kv == KvPrecision::kF32) {
      keys_ = Untouched<float>(count);
      values_ = Untouched<float>(count);
    } else {
      paired_keys_ = Untouched<uint32_t>(count);
      paired_values_ = Untouched<uint32_t>(count);
      new_keys_.resize(q_.size());
      new_values_.resize(q_.size());
    }
  } catch (const std::bad_alloc&) {
    Fail("the keys and values of {} texts of {} characters take {} bytes, more than there is memory",
         num_panels * kPanelRows, config.context_length, bytes);
  }
}

size_t StepPass::CacheBytes(const ModelConfig& config, size_t num_panels, KvPrecision kv) {
  size_t bytes = 2 * sizeof(float) * kPanelRows;
  const size_t words = kv == KvPrecision::kF32 ? config.head_size() : NumPairs(config.head_size());
  for (const size_t factor : {num_panels, config.num_layers, config.context_length, config.num_heads, words}) {
    if (__builtin_mul_overflow(bytes, factor, &bytes)) {
      Fail("{} layers, context {} and width {} need more bytes for keys and values than can be counted",
           config.num_layers, config.context_length, config.width);
    }
  }
  return bytes;
}

size_t StepPass::HeadStride() const {
  const size_t size = model_.config().head_size();
  return model_.config().context_length * (kv_ == KvPrecision::kF32 ? size : NumPairs(size)) * kPanelRows;
}

size_t StepPass::CacheOffset(size_t layer, size_t panel) const {
  return (layer * num_panels_ + panel) * model_.config().num_heads * HeadStride();
}

size_t StepPass::PreviousSlot(size_t back) const {
  const size_t slots = model_.config().context_length;
  return (newest_slot_ + slots - back % slots) % slots;
}

float* StepPass::Step(const int32_t* tokens, const int32_t* positions, size_t num_live) {
  const ModelConfig& config = model_.config();
  const Weights& parameters = model_.weights();
  newest_slot_ = newest_slot_ + 1 == config.context_length ? 0 : newest_slot_ + 1;
  Embed(tokens, positions, num_live, parameters.wte.data(), parameters.wpe.data(), config.width, work_.x.data());
  for (size_t i = 0; i < config.num_layers; ++i) {
    Normalize(parameters.layers[i].ln_1, config, work_.x.data(), num_live, work_.normed.data());
    Project(i, num_live);
    Attend(i, positions, num_live);
    FinishBlock(model_, team_, i, num_live, 0, work_);
  }
  return Head(model_, team_, work_.x.data(), num_live, work_);
}

void StepPass::Project(size_t layer, size_t num_live) {
  const ModelConfig& config = model_.config();
  const size_t width = config.width, size = config.head_size();
  const auto panels_of = [&](AlignedFloats& part) {
    return HeadLayout{part.data(), width * kPanelRows, size * kPanelRows};
  };
  const auto newest_of = [&](Untouched<float>& part) {
    return HeadLayout{part.data() + CacheOffset(layer, 0) + newest_slot_ * size * kPanelRows, CacheOffset(0, 1),
                      HeadStride()};
  };
  const bool is_paired = kv_ == KvPrecision::kBf16;
  MultiplyQkv(team_, work_.normed.data(), num_live, model_.packed().layers[layer].c_attn.matrix(), config,
              panels_of(q_), is_paired ? panels_of(new_keys_) : newest_of(keys_),
              is_paired ? panels_of(new_values_) : newest_of(values_));
  for (size_t panel = 0; is_paired && panel < NumPanels(num_live); ++panel) {
    const size_t from = panel * width * kPanelRows;
    const size_t to = CacheOffset(layer, panel) + newest_slot_ * NumPairs(size) * kPanelRows;
    StorePairs(new_keys_.data() + from, config.num_heads, size, paired_keys_.data() + to, HeadStride());
    StorePairs(new_values_.data() + from, config.num_heads, size, paired_values_.data() + to, HeadStride());
  }
}

// Attention of each lane over its own slots; pieces are heads of panels.
void StepPass::Attend(size_t layer, const int32_t* positions, size_t num_live) {
  const ModelConfig& config = model_.config();
  const size_t heads = config.num_heads, size = config.head_size(), slots = config.context_length;
  const size_t panels = NumPanels(num_live);
  double characters = 0;
  for (size_t r = 0; r < num_live; ++r) characters += positions[r] + 1;
  const double bytes = 2 * sizeof(float) * characters * static_cast<double>(config.width);
  Share(team_, panels * heads, bytes / kBytesPerSecond, [&](size_t piece, size_t begin, size_t end) {
    float* scratch = work_.scratch.data() + piece * PanelFloats(slots, kPanelRows);
    while (begin < end) {
      const size_t panel = begin / heads, head = begin % heads, count = std::min(heads - head, end - begin);
      int32_t lengths[kPanelRows];
      for (size_t r = 0; r < kPanelRows; ++r) {
        const size_t lane = panel * kPanelRows + r;
        lengths[r] = lane < num_live ? positions[lane] + 1 : 1;
      }
      const size_t first = CacheOffset(layer, panel) + head * HeadStride();
      const size_t offset = (panel * config.width + head * size) * kPanelRows;
      const auto attend = [&]<typename T>(const T* keys, const T* values) {
        const DecodeCacheOf<T> cache{keys + first, values + first, HeadStride(), slots, newest_slot_};
        DecodeAttention(q_.data() + offset, cache, lengths, count, size, work_.mixed.data() + offset, scratch);
      };
      if (kv_ == KvPrecision::kF32) {
        attend(keys_.data(), values_.data());
      } else {
        attend(paired_keys_.data(), paired_values_.data());
      }
      begin += count;
    }
  });
}

void StepPass::Load(size_t lane, const TextPass& pass, size_t count) {
  const ModelConfig& config = model_.config();
  const size_t width = config.width, size = config.head_size(), panel = lane / kPanelRows, row = lane % kPanelRows;
  // Part 1 of the tables, keys, or part 2, values.
  const auto fill = [&](auto* cache, size_t layer, size_t part) {
    using Element = std::remove_pointer_t<decltype(cache)>;
    constexpr size_t kNumbers = std::is_same_v<Element, float> ? 1 : 2;
    const size_t elements = (size + kNumbers - 1) / kNumbers;
    cache += CacheOffset(layer, panel) + row;
    for (size_t t = 0; t < count; ++t) {
      // The next step takes the slot behind newest_slot_; position count - 1 belongs in newest_slot_ itself.
      const size_t slot = PreviousSlot(count - 1 - t) * elements * kPanelRows;
      const float* from = pass.Table(layer, t / kPanelRows) + part * width * kPanelRows + t % kPanelRows;
      for (size_t h = 0; h < config.num_heads; ++h, from += size * kPanelRows) {
        for (size_t i = 0; i < elements; ++i) {
          Element& to = cache[h * HeadStride() + slot + i * kPanelRows];
          const float* number = from + i * kNumbers * kPanelRows;
          if constexpr (kNumbers == 1) {
            to = *number;
          } else {
            // They are rounded already.
            const uint32_t odd = 2 * i + 1 < size ? std::bit_cast<uint32_t>(number[kPanelRows]) : 0;
            to = std::bit_cast<uint32_t>(*number) >> 16 | odd;
          }
        }
      }
    }
  };
  for (size_t i = 0; i < config.num_layers; ++i) {
    if (kv_ == KvPrecision::kF32) {
      fill(keys_.data(), i, 1);
      fill(values_.data(), i, 2);
    } else {
      fill(paired_keys_.data(), i, 1);
      fill(paired_values_.data(), i, 2);
    }
  }
}

}  // namespace octavo
