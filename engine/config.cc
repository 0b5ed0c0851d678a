// Reading, checking and writing configurations; see config.h.
#include "engine/config.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/fail.h"
#include "engine/json.h"
#include "engine/utf8.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<ActivationKind, std::string_view>, 3> kActivationNames = {
    {{ActivationKind::kGeluErf, "gelu"}, {ActivationKind::kGeluTanh, "gelu_new"}, {ActivationKind::kRelu, "relu"}}};

// A JSON value for a message: short, one line. Containers are named, not shown: they may be large or deep.
std::string Show(const Json& value) {
  if (value.is_string()) return Quote(value.get_ref<const std::string&>());
  return value.is_structured() ? value.type_name() : value.dump();
}

class Reader {
 public:
  Reader(const Json& object, std::string_view where) : object_(object), where_(where) {}

  // The value of `key`, or null where it is absent or JSON's null.
  const Json* Find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  // A size from 1 to 2^31-1; `fallback` where the key is absent, which is an error when that is 0.
  size_t Size(const char* key, size_t fallback = 0) const {
    const Json* value = Find(key);
    if (!value && fallback > 0) return fallback;
    if (!value) Fail("{}: {} is missing; expected a whole number of at least 1", where_, key);
    constexpr uint64_t kLargest = std::numeric_limits<int32_t>::max();
    if (!value->is_number_unsigned() || value->get<uint64_t>() < 1 || value->get<uint64_t>() > kLargest) {
      Fail("{}: {} is {}; expected a whole number from 1 to {}", where_, key, Show(*value), kLargest);
    }
    return value->get<size_t>();
  }

  std::optional<bool> Flag(const char* key) const {
    const Json* value = Find(key);
    if (!value) return std::nullopt;
    if (!value->is_boolean()) Fail("{}: {} is {}; expected true or false", where_, key, Show(*value));
    return value->get<bool>();
  }

  // The only accepted value of a key that would change the mathematics.
  void Require(const char* key, bool expected) const {
    if (Flag(key).value_or(expected) != expected) {
      Fail("{}: {} is {}, a variant that octavo does not have", where_, key, !expected);
    }
  }

  // An id or a list of ids; those beyond the vocabulary are dropped.
  std::vector<TokenId> Tokens(const char* key, size_t vocabulary_size) const {
    std::vector<TokenId> ids;
    const Json* value = Find(key);
    if (!value) return ids;
    const auto take = [&](const Json& id) {
      if (!id.is_number_integer()) Fail("{}: {} is {}; expected an id", where_, key, Show(id));
      if (id.is_number_unsigned() && id.get<uint64_t>() < vocabulary_size) ids.push_back(id.get<TokenId>());
    };
    if (value->is_array()) {
      for (const Json& id : *value) take(id);
    } else {
      take(*value);
    }
    return ids;
  }

  ActivationKind Activation() const {
    const Json* value = Find("activation_function");
    if (!value) return ActivationKind::kGeluTanh;
    for (const auto& [kind, name] : kActivationNames) {
      if (*value == name) return kind;
    }
    Fail("{}: activation_function is {}; expected gelu, gelu_new or relu", where_, Show(*value));
  }

  float Epsilon() const {
    const Json* value = Find("layer_norm_epsilon");
    if (!value) return 1e-5f;
    const double epsilon = value->is_number() ? value->get<double>() : -1;
    if (!(epsilon >= 0 && epsilon <= 1)) {
      Fail("{}: layer_norm_epsilon is {}; expected a number from 0 to 1", where_, Show(*value));
    }
    return static_cast<float>(epsilon);
  }

 private:
  const Json& object_;
  std::string_view where_;
};

}  // namespace

std::string_view ActivationName(ActivationKind kind) {
  for (const auto& [candidate, name] : kActivationNames) {
    if (candidate == kind) return name;
  }
  return "unknown";
}

ModelConfig ParseConfig(std::string_view json, size_t vocabulary_size, std::string_view where) {
  const JsonDocument document = ParseJson(json, where);
  const Json& object = *document;
  if (!object.is_object()) Fail("{} is {}; expected an object", where, Show(object));
  const Reader read(object, where);
  if (const Json* type = read.Find("model_type"); type && *type != "gpt2") {
    Fail("{}: model_type is {}; expected gpt2", where, Show(*type));
  }
  read.Require("scale_attn_weights", true);
  read.Require("scale_attn_by_inverse_layer_idx", false);
  read.Require("add_cross_attention", false);

  ModelConfig config;
  config.width = read.Size("n_embd");
  config.num_heads = read.Size("n_head");
  config.num_layers = read.Size("n_layer");
  config.context_length = read.Size("n_positions");
  config.vocabulary_size = read.Size("vocab_size", vocabulary_size);
  config.states_vocabulary_size = read.Find("vocab_size") != nullptr;
  config.inner_width = read.Size("n_inner", 4 * config.width);
  config.activation = read.Activation();
  config.layer_norm_epsilon = read.Epsilon();
  config.tied = read.Flag("tie_word_embeddings");
  config.biases = read.Flag("bias");
  config.start_tokens = read.Tokens("bos_token_id", config.vocabulary_size);
  config.end_tokens = read.Tokens("eos_token_id", config.vocabulary_size);
  config.padding_tokens = read.Tokens("pad_token_id", config.vocabulary_size);
  if (config.width % config.num_heads != 0) {
    Fail("{}: n_head {} does not divide n_embd {}", where, config.num_heads, config.width);
  }
  return config;
}

std::string WriteConfig(const ModelConfig& config) {
  nlohmann::ordered_json object = {
      {"n_embd", config.width},
      {"n_head", config.num_heads},
      {"n_layer", config.num_layers},
      {"n_positions", config.context_length},
      {"vocab_size", config.vocabulary_size},
      {"activation_function", ActivationName(config.activation)},
      {"layer_norm_epsilon", config.layer_norm_epsilon},
      {"tie_word_embeddings", config.tied.value()},
      {"bias", config.biases.value()},
  };
  if (config.inner_width != 4 * config.width) object["n_inner"] = config.inner_width;
  if (!config.start_tokens.empty()) object["bos_token_id"] = config.start_tokens;
  if (!config.end_tokens.empty()) object["eos_token_id"] = config.end_tokens;
  if (!config.padding_tokens.empty()) object["pad_token_id"] = config.padding_tokens;
  return object.dump();
}

}  // namespace octavo
