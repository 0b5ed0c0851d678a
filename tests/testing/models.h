// Small models for tests: random ones of any shape, and one that writes a given text.
#ifndef OCTAVO_TESTS_TESTING_MODELS_H_
#define OCTAVO_TESTS_TESTING_MODELS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model.h"
#include "engine/utf8.h"
#include "tests/testing/random.h"

namespace octavo::test {

// One vocabulary entry a code point.
inline std::vector<std::string> Characters(std::string_view text) {
  std::vector<std::string> entries;
  for (const char32_t c : DecodeUtf8(text)) AppendUtf8(c, entries.emplace_back());
  return entries;
}

struct ModelShape {
  std::vector<std::string> vocabulary;
  size_t context_length = 8, num_layers = 1, num_heads = 1, width = 4;
  size_t inner_width = 0;  // 0: 4 · width
  ActivationKind activation = ActivationKind::kGeluTanh;
  bool tied = false, biases = true;
};

inline ModelShape M8Shape() { return {Characters("\n abc"), 8, 2, 2, 16}; }

inline ModelShape M64Shape() {
  return {Characters("\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"), 64, 4, 4, 64};
}

// Odd sizes, and characters that need escapes or more than one byte.
inline ModelShape ModdShape() {
  return {Characters("€é\u2028😀\"\\\t\x01 \nABCDEFGHIJKLMNOPQRSTUVWXYabcdefghijklmnopqrstuvwxyz"), 33, 2, 3, 36};
}

inline ModelConfig ConfigOf(const ModelShape& shape) {
  ModelConfig config;
  config.width = shape.width;
  config.num_heads = shape.num_heads;
  config.num_layers = shape.num_layers;
  config.context_length = shape.context_length;
  config.vocabulary_size = shape.vocabulary.size();
  config.inner_width = shape.inner_width ? shape.inner_width : 4 * shape.width;
  config.activation = shape.activation;
  config.tied = shape.tied;
  config.biases = shape.biases;
  return config;
}

// [inputs, outputs] → [outputs, inputs]
inline std::vector<float> Transposed(const std::vector<float>& matrix, size_t inputs) {
  const size_t outputs = matrix.size() / inputs;
  std::vector<float> out(matrix.size());
  for (size_t i = 0; i < matrix.size(); ++i) out[i % outputs * inputs + i / outputs] = matrix[i];
  return out;
}

// Parameters whose logits and attention spread: matrices of deviation 2/√inputs, gains around 1, biases of deviation 0.2.
inline Weights RandomWeights(const ModelConfig& config, uint64_t seed) {
  Random random(seed);
  const double root3 = std::sqrt(3.0);
  const auto matrix = [&](size_t inputs, size_t outputs) {
    const double limit = 2 * root3 / std::sqrt(static_cast<double>(inputs));
    return random.Floats(inputs * outputs, -limit, limit);
  };
  const auto bias = [&](size_t size) {
    std::vector<float> values = random.Floats(size, -0.2 * root3, 0.2 * root3);
    return config.biases.value_or(true) ? values : std::vector<float>(size, 0.0f);
  };
  const auto norm = [&] { return Norm{random.Floats(config.width, 0.6, 1.4), bias(config.width)}; };
  const auto linear = [&](size_t inputs, size_t outputs) { return Linear{matrix(inputs, outputs), bias(outputs)}; };
  Weights weights;
  weights.wte = random.Floats(config.vocabulary_size * config.width, -1.5, 1.5);
  weights.wpe = random.Floats(config.context_length * config.width, -1.5, 1.5);
  for (size_t i = 0; i < config.num_layers; ++i) {
    LayerWeights& layer = weights.layers.emplace_back();
    layer.ln_1 = norm();
    layer.c_attn = linear(config.width, 3 * config.width);
    layer.attn_proj = linear(config.width, config.width);
    layer.ln_2 = norm();
    layer.c_fc = linear(config.width, config.inner_width);
    layer.mlp_proj = linear(config.inner_width, config.width);
  }
  weights.ln_f = norm();
  weights.lm_head = config.tied.value_or(false) ? Transposed(weights.wte, config.vocabulary_size)
                                                : matrix(config.width, config.vocabulary_size);
  return weights;
}

inline size_t CountParameters(const ModelConfig& config) {
  const size_t width = config.width, inner = config.inner_width;
  const size_t matrices = 4 * width * width + 2 * width * inner, biases = 4 * width + inner + width;
  const bool tied = config.tied.value_or(false), has_biases = config.biases.value_or(true);
  return (tied ? 1 : 2) * config.vocabulary_size * width + config.context_length * width +
         config.num_layers * (matrices + 2 * width + (has_biases ? biases + 2 * width : 0)) + width +
         (has_biases ? width : 0);
}

// Through Model's constructor; special tokens may be added to `config` first.
inline Model BuildModel(ModelConfig config, std::vector<std::string> vocabulary, Weights weights) {
  Vocabulary entries(std::move(vocabulary), config, "a test's model");
  StorageInfo storage;
  storage.type = "F32";
  storage.orientation = "[out, in]";
  storage.tied = config.tied.value_or(false);
  storage.biases = config.biases.value_or(true);
  storage.num_parameters = CountParameters(config);
  const TokenId start = entries.Find(U'\n').value_or(0);
  return Model(std::move(config), std::move(entries), std::move(weights), std::move(storage), start);
}

inline Model RandomModel(const ModelShape& shape, uint64_t seed = 1) {
  const ModelConfig config = ConfigOf(shape);
  return BuildModel(config, shape.vocabulary, RandomWeights(config, seed));
}

// A model that knows its position and nothing else: at position t it gives script[t] nearly all probability, whatever it has read. With a
// prompt of one character it writes the script, as far as the context of script.size() seats goes. `config` may name special tokens.
//
//   wte = 0, wpe = the unit matrix, blocks = 0, so that ln_f sees seat t as a spike in feature t; lm_head[t, script[t]] = 20
inline Model ScriptedModel(std::vector<std::string> vocabulary, const std::vector<TokenId>& script,
                           ModelConfig config = {}) {
  const size_t width = script.size();
  ModelConfig shape = ConfigOf({vocabulary, width, 1, 1, width});
  shape.start_tokens = config.start_tokens;
  shape.end_tokens = config.end_tokens;
  shape.padding_tokens = config.padding_tokens;
  Weights weights = RandomWeights(shape, 1);
  const auto clear = [](std::vector<float>& values) { values.assign(values.size(), 0.0f); };
  for (auto* values : {&weights.wte, &weights.wpe, &weights.lm_head, &weights.ln_f.bias}) clear(*values);
  for (Linear* linear : {&weights.layers[0].attn_proj, &weights.layers[0].mlp_proj}) {
    clear(linear->weight);
    clear(linear->bias);
  }
  weights.ln_f.gain.assign(width, 1.0f);
  for (size_t t = 0; t < width; ++t) {
    weights.wpe[t * width + t] = 1;
    weights.lm_head[t * vocabulary.size() + static_cast<size_t>(script[t])] = 20;
  }
  return BuildModel(std::move(shape), std::move(vocabulary), std::move(weights));
}

// The same, with a script of single characters.
inline Model ScriptedModel(std::string_view vocabulary, std::string_view script) {
  const std::vector<std::string> entries = Characters(vocabulary);
  ModelConfig config;
  config.vocabulary_size = entries.size();
  return ScriptedModel(entries, Vocabulary(entries, config, "a test's vocabulary").Encode(script));
}

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_MODELS_H_
