// The forward pass in the vector kernels; see forward.h.
#include "engine/forward.h"

#include <algorithm>
#include <cassert>
#include <numeric>

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

// out = epilogue(x · matrix), tiles of outputs shared by the team.
void Product(const Team* team, const float* x, size_t rows, const PackedMatrix& matrix, Epilogue epilogue, float* out) {
  Share(team, NumTiles(matrix.num_outputs), ProductSeconds(matrix, rows), [&](size_t, size_t begin, size_t end) {
    MatMul(x, rows, matrix, epilogue, out, {begin, end});
  });
}

// Where the queries, keys and values of a block go.
struct QkvLayout {
  HeadLayout q, k, v;
};

void QkvProduct(const Team* team, const float* x, size_t rows, const PackedMatrix& matrix, const ModelConfig& config,
                const QkvLayout& to) {
  Share(team, NumTiles(matrix.num_outputs), ProductSeconds(matrix, rows), [&](size_t, size_t begin, size_t end) {
    Qkv(x, rows, matrix, config.num_heads, config.head_size(), to.q, to.k, to.v, {begin, end});
  });
}

// One block of the model, on `rows` rows of work.x:
//
//     q, k, v = layer_norm(x) · c_attn
//     x += attention(q, k, v) · attn_proj
//     x += activation(layer_norm(x) · c_fc) · mlp_proj
//
// attend() makes `mixed` of what lies at `to`. Panels before `first_panel` get keys and values alone.
template <typename Attend>
void Block(const Model& model, const Team* team, size_t layer, size_t rows, size_t first_panel, const QkvLayout& to,
           const Attend& attend, Workspace& work) {
  const ModelConfig& config = model.config();
  const LayerWeights& weights = model.weights().layers[layer];
  const PackedLayer& packed = model.packed().layers[layer];
  Normalize(weights.ln_1, config, work.x.data(), rows, work.normed.data());
  QkvProduct(team, work.normed.data(), rows, packed.c_attn.matrix(), config, to);
  attend();
  const size_t skip = first_panel * kPanelRows * config.width, live = rows - first_panel * kPanelRows;
  float* x = work.x.data() + skip;
  float* normed = work.normed.data() + skip;
  Product(team, work.mixed.data() + skip, live, packed.attn_proj.matrix(), Epilogue::kAddResidual, x);
  Normalize(weights.ln_2, config, x, live, normed);
  Product(team, normed, live, packed.c_fc.matrix(), ActivationEpilogue(config.activation), work.inner.data());
  Product(team, work.inner.data(), live, packed.mlp_proj.matrix(), Epilogue::kAddResidual, x);
}

// layer_norm(x) · lm_head, of `rows` rows from `x` on.
float* ProjectToVocabulary(const Model& model, const Team* team, const float* x, size_t rows, Workspace& work) {
  work.logits.resize(PanelFloats(rows, model.config().vocabulary_size));
  Normalize(model.weights().ln_f, model.config(), x, rows, work.normed.data());
  Product(team, work.normed.data(), rows, model.packed().lm_head.matrix(), Epilogue::kStore, work.logits.data());
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
  for (size_t layer = 0; layer < config.num_layers; ++layer) {
    tables_[layer].resize(PanelFloats(rows, 3 * width));
    float* table = tables_[layer].data();
    const size_t first_panel = layer + 1 == config.num_layers ? first_needed / kPanelRows : 0;
    const auto part = [&](size_t number) {
      return HeadLayout{table + number * width * kPanelRows, panel_stride, size * kPanelRows};
    };
    const auto attend = [&] {
      for (size_t panel = 0; kv_ == KvPrecision::kBf16 && panel < NumPanels(rows); ++panel)
        RoundToBfloat16(table + panel * panel_stride + width * kPanelRows, 2 * width);
      AttendText(team_, table, rows, first_panel, config, weights, work_);
    };
    Block(model_, team_, layer, rows, first_panel, {part(0), part(1), part(2)}, attend, work_);
    if (weights) weights += heads * rows * rows;
  }
}

const float* TextPass::Logits(size_t panel) {
  const size_t begin = panel * kPanelRows;
  return ProjectToVocabulary(model_, team_, work_.x.data() + begin * model_.config().width,
                             std::min(length_ - begin, kPanelRows), work_);
}

const float* TextPass::Table(size_t layer) const { return tables_[layer].data(); }

StepPass::StepPass(const Model& model, size_t num_panels, const Team* team, KvPrecision kv)
    : model_(model), team_(team), num_panels_(num_panels), cache_(model.config(), num_panels, kv) {
  const ModelConfig& config = model.config();
  Resize(work_, num_lanes(), config);
  q_.resize(PanelFloats(num_lanes(), config.width));
  work_.scratch.resize(PanelFloats(config.context_length, kPanelRows) * MaxPieces(team));
}

float* StepPass::Step(const int32_t* tokens, const int32_t* positions, size_t num_live) {
  const ModelConfig& config = model_.config();
  const Weights& parameters = model_.weights();
  const HeadLayout q{q_.data(), config.width * kPanelRows, config.head_size() * kPanelRows};
  cache_.Advance();
  Embed(tokens, positions, num_live, parameters.wte.data(), parameters.wpe.data(), config.width, work_.x.data());
  for (size_t layer = 0; layer < config.num_layers; ++layer) {
    const auto attend = [&] {
      cache_.Store(layer, NumPanels(num_live));
      Attend(layer, positions, num_live);
    };
    Block(model_, team_, layer, num_live, 0, {q, cache_.NewKeys(layer), cache_.NewValues(layer)}, attend, work_);
  }
  return ProjectToVocabulary(model_, team_, work_.x.data(), num_live, work_);
}

// Attention of each lane over its own slots; pieces are heads of panels.
void StepPass::Attend(size_t layer, const int32_t* positions, size_t num_live) {
  const ModelConfig& config = model_.config();
  const size_t heads = config.num_heads;
  double characters = 0;
  for (size_t r = 0; r < num_live; ++r) characters += positions[r] + 1;
  const double bytes = 2 * sizeof(float) * characters * static_cast<double>(config.width);
  Share(team_, NumPanels(num_live) * heads, bytes / kBytesPerSecond, [&](size_t piece, size_t begin, size_t end) {
    float* scratch = work_.scratch.data() + piece * PanelFloats(config.context_length, kPanelRows);
    while (begin < end) {
      const size_t panel = begin / heads, head = begin % heads, count = std::min(heads - head, end - begin);
      int32_t lengths[kPanelRows];
      for (size_t r = 0; r < kPanelRows; ++r) {
        const size_t lane = panel * kPanelRows + r;
        lengths[r] = lane < num_live ? positions[lane] + 1 : 1;
      }
      const size_t offset = (panel * config.width + head * config.head_size()) * kPanelRows;
      cache_.Attend(layer, panel, head, count, q_.data() + offset, lengths, work_.mixed.data() + offset, scratch);
      begin += count;
    }
  });
}

void StepPass::Load(size_t lane, const TextPass& pass, size_t count) {
  for (size_t i = 0; i < model_.config().num_layers; ++i) cache_.Load(i, lane, pass.Table(i), count);
}

}  // namespace octavo
