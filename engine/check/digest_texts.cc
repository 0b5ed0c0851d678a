// The fixed cases of whole models: logits, and texts of the built-in `tiny` and of two others, an odd one and a wide one with heads of 64
// and a context of 300, whose weights are made of integers.
#include <string>
#include <utility>

#include "engine/check/digests.h"
#include "engine/check/fixed.h"
#include "engine/check/models.h"
#include "engine/forward.h"
#include "engine/generate.h"
#include "engine/score.h"
#include "kernels/strict_math.h"

namespace octavo::check {
namespace {

ModelConfig OddConfig() {
  ModelConfig config;
  config.width = 33;
  config.num_heads = 3;
  config.num_layers = 2;
  config.context_length = 21;
  config.vocabulary_size = 61;
  config.inner_width = 50;
  config.activation = ActivationKind::kGeluErf;
  config.layer_norm_epsilon = 0x1p-7f;
  return config;
}

ModelConfig WideConfig() {
  ModelConfig config;
  config.width = 128;
  config.num_heads = 2;
  config.num_layers = 1;
  config.context_length = 300;
  config.vocabulary_size = 20;
  config.inner_width = 64;
  config.activation = ActivationKind::kRelu;
  return config;
}

// About 1.7 / sqrt(inputs), as a power of two.
float ScaleFor(size_t inputs) {
  float scale = 2;
  for (; inputs > 1; inputs = (inputs + 3) / 4) scale /= 2;
  return scale;
}

Model FixedModel(const ModelConfig& config, uint64_t seed) {
  FixedInputs inputs(seed);
  const size_t width = config.width;
  const auto linear = [&](size_t from, size_t to) {
    return Linear{inputs.Numbers(from * to, ScaleFor(from)), inputs.Numbers(to, 0.25f)};
  };
  const auto norm = [&] { return Norm{inputs.Numbers(width, 0.5f, 1), inputs.Numbers(width, 0.25f)}; };
  Weights weights;
  weights.wte = inputs.Numbers(config.vocabulary_size * width, 1);
  weights.wpe = inputs.Numbers(config.context_length * width, 0.5f);
  for (size_t i = 0; i < config.num_layers; ++i) {
    LayerWeights& layer = weights.layers.emplace_back();
    layer.ln_1 = norm();
    layer.c_attn = linear(width, 3 * width);
    layer.attn_proj = linear(width, width);
    layer.ln_2 = norm();
    layer.c_fc = linear(width, config.inner_width);
    layer.mlp_proj = linear(config.inner_width, width);
  }
  weights.ln_f = norm();
  weights.lm_head = linear(width, config.vocabulary_size).weight;
  return ModelWithWeights(config, std::move(weights));
}

const Model& Tiny() {
  static const Model model = Model::BuiltIn("tiny");
  return model;
}

const Model& Odd() {
  static const Model model = FixedModel(OddConfig(), 201);
  return model;
}

const Model& Wide() {
  static const Model model = FixedModel(WideConfig(), 202);
  return model;
}

std::vector<TokenId> FixedText(const Model& model, size_t length) {
  return FixedInputs(203).Ids(length, model.config().vocabulary_size);
}

// Logits of the last panel.
void AddLogits(const Model& model, size_t length, KvPrecision kv, DigestHash& hash) {
  const std::vector<TokenId> text = FixedText(model, length);
  const size_t panel = NumPanels(length) - 1, rows = length - panel * kPanelRows;
  TextPass pass(model, nullptr, kv);
  pass.Read(text, panel * kPanelRows);
  const float* logits = pass.Logits(panel);
  for (size_t v = 0; v < model.config().vocabulary_size; ++v) {
    for (size_t r = 0; r < rows; ++r) hash.Add(logits[v * kPanelRows + r]);
  }
}

// A text of the default seed.
struct TextCase {
  const Model& (*model)();
  size_t prompt_length;
  uint64_t max_chars, sequence;
  SamplingOptions sampling;
  Overflow overflow = Overflow::kSlide;
  KvPrecision kv = KvPrecision::kF32;
};

const TextCase kTexts[] = {
    {Tiny, 1, 80, 0, {1, 0, 1}, Overflow::kRestart},
    {Tiny, 40, 30, 1, {0.75, 0, 1}},
    {Tiny, 6, 40, 2, {1, 20, 0.9375}, Overflow::kStop, KvPrecision::kBf16},
    {Odd, 1, 40, 3, {1, 0, 1}},
    {Odd, 20, 40, 4, {2, 30, 0.5}, Overflow::kRestart},
    {Odd, 3, 15, 5, {0, 0, 1}, Overflow::kSlide, KvPrecision::kBf16},
    {Wide, 100, 20, 6, {1, 0, 1}},
};

}  // namespace

uint64_t DigestModel() {
  DigestHash hash;
  AddLogits(Tiny(), 64, KvPrecision::kF32, hash);
  AddLogits(Odd(), 21, KvPrecision::kF32, hash);
  AddLogits(Odd(), 17, KvPrecision::kBf16, hash);
  AddLogits(Wide(), 300, KvPrecision::kF32, hash);
  AddLogits(Wide(), 50, KvPrecision::kBf16, hash);
  return hash.value();
}

uint64_t DigestText() {
  DigestHash hash;
  for (const TextCase& text : kTexts) {
    GenerateRequest request;
    request.prompt = FixedText(text.model(), text.prompt_length);
    request.options.max_chars = text.max_chars;
    request.options.sampling = text.sampling;
    request.options.overflow = text.overflow;
    request.seed = 1;
    request.sequence = text.sequence;
    const Completion completion = Generate(text.model(), request, nullptr, {.kv = text.kv});
    hash.Add(completion.text);
    hash.Add(completion.log_probability);
  }
  for (const Model* model : {&Tiny(), &Odd()}) {
    for (const double each : ScoreText(*model, {FixedText(*model, 70), 0, "", {}}).log_probabilities) hash.Add(each);
  }
  return hash.value();
}

}  // namespace octavo::check
