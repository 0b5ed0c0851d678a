// Configurations: defaults, variants, and every value that must be refused by key.
#include "engine/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/testing/errors.h"

namespace octavo::test {
namespace {

using Json = nlohmann::json;

const Json kMinimal = {{"n_embd", 12}, {"n_head", 3}, {"n_layer", 2}, {"n_positions", 8}};

Json With(const std::string& key, const Json& value) {
  Json object = kMinimal;
  object[key] = value;
  return object;
}

ModelConfig Parse(const Json& object, size_t vocabulary_size = 5) {
  return ParseConfig(object.dump(), vocabulary_size, "config.json");
}

::testing::AssertionResult Refused(const Json& object, std::initializer_list<std::string_view> parts) {
  if (const auto result = Fails([&] { Parse(object); }, {"config.json"}); !result) return result;
  return Fails([&] { Parse(object); }, parts);
}

TEST(ParseConfig, Defaults) {
  const ModelConfig config = Parse(kMinimal);
  EXPECT_EQ(config.width, 12u);
  EXPECT_EQ(config.num_heads, 3u);
  EXPECT_EQ(config.head_size(), 4u);
  EXPECT_EQ(config.num_layers, 2u);
  EXPECT_EQ(config.context_length, 8u);
  EXPECT_EQ(config.vocabulary_size, 5u);
  EXPECT_EQ(config.inner_width, 48u);
  EXPECT_EQ(config.activation, ActivationKind::kGeluTanh);
  EXPECT_EQ(config.layer_norm_epsilon, 1e-5f);
  EXPECT_EQ(config.tied, std::nullopt);
  EXPECT_EQ(config.biases, std::nullopt);
  EXPECT_TRUE(config.start_tokens.empty() && config.end_tokens.empty() && config.padding_tokens.empty());
}

TEST(ParseConfig, ReadsEveryVariant) {
  Json object = kMinimal;
  object.update({{"vocab_size", 3}, {"n_inner", 7}, {"activation_function", "relu"}, {"layer_norm_epsilon", 1e-6}});
  object.update({{"tie_word_embeddings", false}, {"bias", true}, {"bos_token_id", 1}, {"pad_token_id", 0}});
  object.update(
      {{"eos_token_id", Json::array({1, 2})}, {"model_type", "gpt2"}, {"some_other_key", {{"a", Json::array({1})}}}});
  const ModelConfig config = Parse(object);
  EXPECT_EQ(config.vocabulary_size, 3u);
  EXPECT_EQ(config.inner_width, 7u);
  EXPECT_EQ(config.activation, ActivationKind::kRelu);
  EXPECT_EQ(config.layer_norm_epsilon, 1e-6f);
  EXPECT_EQ(config.tied, false);
  EXPECT_EQ(config.biases, true);
  EXPECT_EQ(config.start_tokens, std::vector<TokenId>{1});
  EXPECT_EQ(config.end_tokens, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(config.padding_tokens, std::vector<TokenId>{0});
}

TEST(ParseConfig, NamesOfActivations) {
  EXPECT_EQ(Parse(With("activation_function", "gelu")).activation, ActivationKind::kGeluErf);
  EXPECT_EQ(Parse(With("activation_function", "gelu_new")).activation, ActivationKind::kGeluTanh);
  EXPECT_EQ(Parse(With("activation_function", "relu")).activation, ActivationKind::kRelu);
  for (const ActivationKind kind : {ActivationKind::kGeluErf, ActivationKind::kGeluTanh, ActivationKind::kRelu}) {
    EXPECT_EQ(Parse(With("activation_function", ActivationName(kind))).activation, kind);
  }
  for (const Json& value : {Json("silu"), Json("GELU"), Json(""), Json(3), Json::object()}) {
    EXPECT_TRUE(Refused(With("activation_function", value), {"activation_function", "gelu, gelu_new or relu"}));
  }
}

TEST(ParseConfig, NullIsAbsent) {
  for (const char* key : {"n_inner", "activation_function", "layer_norm_epsilon", "tie_word_embeddings", "bias",
                          "eos_token_id", "vocab_size", "model_type"}) {
    EXPECT_EQ(WriteConfig([&] {
                ModelConfig config = Parse(With(key, nullptr));
                config.tied = config.biases = true;
                return config;
              }()),
              WriteConfig([&] {
                ModelConfig config = Parse(kMinimal);
                config.tied = config.biases = true;
                return config;
              }()))
        << key;
  }
}

TEST(ParseConfig, RefusesBadSizesByKey) {
  for (const char* key : {"n_embd", "n_head", "n_layer", "n_positions", "vocab_size", "n_inner"}) {
    for (const Json& value : {Json(0), Json(-1), Json(1.5), Json(8.0), Json(1e300), Json("8"), Json(true),
                              Json::array({8}), Json(2147483648), Json(~uint64_t{0})}) {
      EXPECT_TRUE(Refused(With(key, value), {key, "expected a whole number from 1 to 2147483647"})) << value;
    }
  }
  for (const char* key : {"n_embd", "n_head", "n_layer", "n_positions"}) {
    Json object = kMinimal;
    object.erase(key);
    EXPECT_TRUE(Refused(object, {key, "is missing"}));
    EXPECT_TRUE(Refused(With(key, nullptr), {key, "is missing"}));
  }
  EXPECT_EQ(Parse(With("n_layer", 2147483647)).num_layers, 2147483647u);
}

TEST(ParseConfig, HeadsMustDivideTheWidth) {
  EXPECT_TRUE(Refused(With("n_head", 5), {"n_head 5 does not divide n_embd 12"}));
  EXPECT_TRUE(Refused(With("n_head", 24), {"n_head 24 does not divide n_embd 12"}));
  EXPECT_EQ(Parse(With("n_head", 12)).head_size(), 1u);
}

TEST(ParseConfig, RefusesBadEpsilons) {
  for (const Json& value : {Json(-1e-5), Json(1.5), Json("1e-5"), Json::array()}) {
    EXPECT_TRUE(Refused(With("layer_norm_epsilon", value), {"layer_norm_epsilon", "from 0 to 1"}));
  }
  EXPECT_EQ(Parse(With("layer_norm_epsilon", 0)).layer_norm_epsilon, 0.0f);
}

TEST(ParseConfig, RefusesOtherArchitectures) {
  EXPECT_TRUE(Refused(With("model_type", "llama"), {"model_type is 'llama'", "gpt2"}));
  EXPECT_TRUE(Refused(With("scale_attn_weights", false), {"scale_attn_weights is false"}));
  EXPECT_TRUE(Refused(With("scale_attn_by_inverse_layer_idx", true), {"scale_attn_by_inverse_layer_idx is true"}));
  EXPECT_TRUE(Refused(With("add_cross_attention", true), {"add_cross_attention is true"}));
  Parse(With("scale_attn_weights", true));
  Parse(With("scale_attn_by_inverse_layer_idx", false));
}

TEST(ParseConfig, RefusesFlagsThatAreNone) {
  for (const char* key : {"tie_word_embeddings", "bias", "scale_attn_weights"}) {
    for (const Json& value : {Json(1), Json("true"), Json::array()}) {
      EXPECT_TRUE(Refused(With(key, value), {key, "expected true or false"}));
    }
  }
}

// GPT-2's default configuration names 50256 whatever the vocabulary.
TEST(ParseConfig, DropsSpecialTokensBeyondTheVocabulary) {
  for (const Json& value : {Json(50256), Json(5), Json(-1), Json(~uint64_t{0}), Json::array({5, 50256})}) {
    EXPECT_TRUE(Parse(With("eos_token_id", value)).end_tokens.empty()) << value;
  }
  EXPECT_EQ(Parse(With("eos_token_id", Json::array({7, 4}))).end_tokens, std::vector<TokenId>{4});
  for (const Json& value : {Json("4"), Json(1.5), Json::array({"a"}), Json(true)}) {
    EXPECT_TRUE(Refused(With("eos_token_id", value), {"eos_token_id", "expected an id"}));
  }
}

TEST(ParseConfig, RefusesWhatIsNoObject) {
  for (const char* text : {"[]", "3", "\"x\"", "null"}) {
    EXPECT_TRUE(Fails([&] { ParseConfig(text, 5, "config.json"); }, {"config.json", "expected an object"})) << text;
  }
  EXPECT_TRUE(Fails([] { ParseConfig("{", 5, "config.json"); }, {"config.json", "not valid JSON"}));
  EXPECT_TRUE(
      Fails([] { ParseConfig(R"({"n_embd":1,"n_embd":2})", 5, "config.json"); }, {"config.json", "'n_embd' twice"}));
}

TEST(ParseConfig, LongValuesAreCutInMessages) {
  EXPECT_TRUE(Refused(With("activation_function", std::string(100'000, 'x')), {"activation_function"}));
  EXPECT_TRUE(Refused(With("n_embd", std::string(100'000, '\n')), {"n_embd"}));
}

TEST(WriteConfig, IsReadBack) {
  for (const bool flag : {false, true}) {
    for (const ActivationKind kind : {ActivationKind::kGeluErf, ActivationKind::kGeluTanh, ActivationKind::kRelu}) {
      ModelConfig config{36, 3, 2, 33, 61, flag ? 144u : 50u, kind, 1.1e-7f, flag, !flag, {1}, {2, 60}, {}};
      const ModelConfig read = ParseConfig(WriteConfig(config), 61, "x");
      EXPECT_EQ(WriteConfig(read), WriteConfig(config));
      EXPECT_EQ(read.inner_width, config.inner_width);
      EXPECT_EQ(read.activation, kind);
      EXPECT_EQ(read.layer_norm_epsilon, 1.1e-7f);
      EXPECT_EQ(read.tied, flag);
      EXPECT_EQ(read.biases, !flag);
      EXPECT_EQ(read.end_tokens, config.end_tokens);
      EXPECT_EQ(read.start_tokens, config.start_tokens);
    }
  }
}

}  // namespace
}  // namespace octavo::test
