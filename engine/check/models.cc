// Random models and the whole-model case; see models.h.
#include "engine/check/models.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/forward.h"
#include "engine/reference_pass.h"
#include "engine/utf8.h"
#include "kernels/strict_math.h"

namespace octavo::check {
namespace {

Linear RandomLinear(Random& random, size_t inputs, size_t outputs) {
  const double scale = 1.7 / std::sqrt(static_cast<double>(inputs));
  return {random.Floats(inputs * outputs, -scale, scale), random.Floats(outputs, -0.2, 0.2)};
}

Norm RandomNorm(Random& random, size_t width) {
  return {random.Floats(width, 0.5, 1.5), random.Floats(width, -0.2, 0.2)};
}

ModelConfig RandomConfig(Random& random) {
  static constexpr ActivationKind kKinds[] = {ActivationKind::kGeluErf, ActivationKind::kGeluTanh,
                                              ActivationKind::kRelu};
  ModelConfig config;
  config.num_heads = random.Between(1, 5);
  // Narrower than 12, layer norm divides by deviations that are small by chance, and one plain pass tells little of the error to expect.
  config.width = config.num_heads * random.Between((12 + config.num_heads - 1) / config.num_heads, 20);
  config.num_layers = random.Between(1, 3);
  config.context_length = random.Size(40);
  config.vocabulary_size = random.Between(8, 70);  // nor do a handful of logits
  config.inner_width = random.Bits() % 2 ? 4 * config.width : random.Between(1, 100);
  config.activation = kKinds[random.Below(std::size(kKinds))];
  config.layer_norm_epsilon = kEpsilons[random.Below(std::size(kEpsilons))];
  // Some have heads as large, others a context as long, as those that users bring.
  const size_t kind = random.Below(10);
  if (kind == 0) {
    config.num_heads = random.Between(1, 2);
    config.width = config.num_heads * kLargeHeads[random.Below(std::size(kLargeHeads))];
    config.inner_width = random.Between(1, 100);
    config.num_layers = 1;
  } else if (kind == 1) {
    config.context_length = random.Between(71, 300);
    config.num_layers = 1;
  }
  return config;
}

double LargestDifference(std::span<const double> a, const auto& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - static_cast<double>(b[i])));
  return largest;
}

// The text pass's logits, row-major.
std::vector<float> ReadText(const Model& model, std::span<const TokenId> text, KvPrecision kv) {
  const size_t vocabulary = model.config().vocabulary_size;
  std::vector<float> logits(text.size() * vocabulary);
  TextPass pass(model, nullptr, kv);
  pass.Read(text, 0);
  for (size_t panel = 0; panel < NumPanels(text.size()); ++panel) {
    const float* from = pass.Logits(panel);
    for (size_t t = panel * kPanelRows; t < std::min(text.size(), (panel + 1) * kPanelRows); ++t) {
      for (size_t v = 0; v < vocabulary; ++v) logits[t * vocabulary + v] = from[v * kPanelRows + t % kPanelRows];
    }
  }
  return logits;
}

// Text pass against the double reference; returns its logits.
std::vector<float> CheckTextPass(const Model& model, std::span<const TokenId> text, Outcome& outcome) {
  ReferencePass<double> reference(model);
  ReferencePass<float> plain(model);
  const std::span<const double> expected = reference.ReadAll(text);
  // No float result can be expected to be nearer than its own rounding.
  double rounding = 0;
  for (const double logit : expected) rounding = std::max(rounding, kRoundoff * std::abs(logit));
  const double bound = 8 * std::max(LargestDifference(expected, plain.ReadAll(text)), rounding);
  std::vector<float> logits = ReadText(model, text, KvPrecision::kF32);
  for (size_t i = 0; i < logits.size(); ++i) {
    outcome.Compare(static_cast<double>(logits[i]), expected[i], bound, "logits differ from the reference");
    outcome.Record(logits[i]);
  }
  return logits;
}

// Steps through the text in one lane, the first `prefilled` characters loaded from a text pass, while other lanes read other texts.
void CheckSteps(Random& random, const Model& model, std::span<const TokenId> text, size_t prefilled,
                const std::vector<float>& logits, KvPrecision kv, Outcome& outcome) {
  const size_t vocabulary = model.config().vocabulary_size, context = model.config().context_length;
  StepPass steps(model, random.Between(1, 2), nullptr, kv);
  const size_t num_live = random.Between(1, steps.num_lanes()), lane = random.Below(num_live);
  std::vector<int32_t> tokens(steps.num_lanes()), positions(steps.num_lanes());
  // The others are somewhere in texts of their own; the ring has gone round a bit.
  const auto step_others = [&] {
    for (size_t r = 0; r < tokens.size(); ++r) {
      tokens[r] = static_cast<int32_t>(random.Below(vocabulary));
      positions[r] = static_cast<size_t>(positions[r]) + 1 < context && random.Below(8) ? positions[r] + 1 : 0;
    }
  };
  for (size_t i = random.Below(context + 1); i > 0; --i) {
    step_others();
    steps.Step(tokens.data(), positions.data(), num_live);
  }
  if (prefilled > 0) {
    TextPass pass(model, nullptr, kv);
    pass.Read(text.first(prefilled), prefilled - 1);
    steps.Load(lane, pass, prefilled);
  }
  for (size_t t = prefilled; t < text.size(); ++t) {
    step_others();
    tokens[lane] = text[t];
    positions[lane] = static_cast<int32_t>(t);
    const float* out = steps.Step(tokens.data(), positions.data(), num_live);
    for (size_t v = 0; v < vocabulary; ++v) {
      const float value = out[(lane / kPanelRows * vocabulary + v) * kPanelRows + lane % kPanelRows];
      outcome.RequireSameBits(value, logits[t * vocabulary + v], "steps give other bits than the text pass");
    }
  }
}

}  // namespace

Model ModelWithWeights(const ModelConfig& config, Weights weights) {
  std::vector<std::string> entries = {"\n"};
  for (char32_t c = 0x20; entries.size() < config.vocabulary_size; ++c) {
    if (c >= 0x7F && c < 0xA1) continue;
    AppendUtf8(c, entries.emplace_back());
  }
  StorageInfo storage{"F32", "[out, in]", false, true, 0, 0};
  Vocabulary vocabulary(std::move(entries), config, "a model of the checks");
  return Model(config, std::move(vocabulary), std::move(weights), storage, 0);
}

Model RandomModel(Random& random, ModelConfig config) {
  if (config.inner_width == 0) config.inner_width = 4 * config.width;
  const size_t width = config.width;
  Weights weights;
  weights.wte = random.Floats(config.vocabulary_size * width);
  weights.wpe = random.Floats(config.context_length * width, -0.5, 0.5);
  for (size_t i = 0; i < config.num_layers; ++i) {
    weights.layers.push_back({RandomNorm(random, width), RandomLinear(random, width, 3 * width),
                              RandomLinear(random, width, width), RandomNorm(random, width),
                              RandomLinear(random, width, config.inner_width),
                              RandomLinear(random, config.inner_width, width)});
  }
  weights.ln_f = RandomNorm(random, width);
  weights.lm_head = RandomLinear(random, width, config.vocabulary_size).weight;
  return ModelWithWeights(config, std::move(weights));
}

Outcome CheckModel(Random& random, const Model& model) {
  Outcome outcome;
  const std::vector<TokenId> text =
      random.Tokens(random.Between(1, model.config().context_length), model.config().vocabulary_size);
  const std::vector<float> logits = CheckTextPass(model, text, outcome);
  CheckSteps(random, model, text, 0, logits, KvPrecision::kF32, outcome);
  CheckSteps(random, model, text, random.Below(text.size()), logits, KvPrecision::kF32, outcome);
  // No reference for these, but the same promise.
  const std::vector<float> rounded = ReadText(model, text, KvPrecision::kBf16);
  for (const float logit : rounded) outcome.Record(logit);
  CheckSteps(random, model, text, random.Below(text.size()), rounded, KvPrecision::kBf16, outcome);
  return outcome;
}

Outcome CheckModel(Random& random) { return CheckModel(random, RandomModel(random, RandomConfig(random))); }

}  // namespace octavo::check
