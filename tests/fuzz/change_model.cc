// Consistent changes of model files; see change_model.h.
#include "tests/fuzz/change_model.h"

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostElements = 4096;  // of a tensor: keeps inputs small

Json Parse(std::string_view text) { return Json::parse(text, nullptr, /*allow_exceptions=*/false); }

// Never throws: strings of an input may be anything.
std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

size_t ElementBytes(const Json& type) {
  if (type == "F64") return 8;
  if (type == "F16" || type == "BF16") return 2;
  return 4;
}

class Changer {
 public:
  Changer(Parts& parts, unsigned seed) : parts_(parts), random_(seed) {}

  bool Change() {
    header_ = Parse(parts_.header);
    if (!header_.is_object()) return false;
    for (const auto& [name, tensor] : header_.items()) {
      if (name != "__metadata__" && IsTensor(tensor)) names_.push_back(name);
    }
    const size_t kind = Below(8);
    if (kind < 5) return !names_.empty() && ChangeTensors(kind);
    return kind < 7 ? ChangeConfig() : ChangeVocabulary();
  }

 private:
  size_t Below(size_t count) { return random_() % count; }
  template <typename List>
  const auto& Any(const List& list) {
    return list[Below(list.size())];
  }

  bool IsTensor(const Json& tensor) const {
    if (!tensor.is_object() || !tensor.contains("shape") || !tensor["shape"].is_array()) return false;
    if (!tensor.contains("dtype") || !tensor.contains("data_offsets")) return false;
    const Json& offsets = tensor["data_offsets"];
    return offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() &&
           offsets[0].get<size_t>() <= parts_.data.size() && Elements(tensor["shape"]).has_value();
  }

  static std::optional<size_t> Elements(const Json& shape) {
    size_t product = 1;
    for (const Json& size : shape) {
      if (!size.is_number_unsigned() || size.get<size_t>() > kMostElements) return std::nullopt;
      product *= size.get<size_t>();
      if (product > kMostElements) return std::nullopt;
    }
    return product;
  }

  bool ChangeTensors(size_t kind) {
    const std::string name = Any(names_);
    switch (kind) {
      case 0:
        ChangeShape(header_[name]["shape"]);
        break;
      case 1:
        header_[name]["dtype"] = Any(std::array{"F32", "F16", "BF16", "F64", "I32"});
        break;
      case 2:
        header_.erase(name);
        break;
      default: {  // a second one under another name, or the same one renamed
        const Json tensor = header_[name];
        if (kind == 3) header_.erase(name);
        header_[NewName(name)] = tensor;
      }
    }
    return Rebuild();
  }

  std::string NewName(const std::string& name) {
    const std::string prefix = Any(std::array{"", "transformer.", "_orig_mod.", "module."});
    if (!prefix.empty()) return prefix + name;
    return Below(2) ? Any(names_)
                    : Any(std::array{"wte.weight", "lm_head.weight", "ln_f.bias", "h.0.attn.bias", "h.1.ln_1.weight",
                                     "h.1.attn.masked_bias", "h.0.mlp.c_fc.bias"});
  }

  void ChangeShape(Json& shape) {
    const size_t kind = shape.empty() ? 0 : Below(5);
    if (kind == 0) {
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(Below(shape.size() + 1)), 1);
    } else if (kind == 1) {
      shape.erase(Below(shape.size()));
    } else if (kind == 2) {
      std::swap(shape[0], shape[shape.size() - 1]);
    } else {
      Json& size = shape[Below(shape.size())];
      size = kind == 3 ? size.get<size_t>() + 1 : size.get<size_t>() - (size != 0u);
    }
  }

  // Lays the tensors out anew: the data that they had, cut or lengthened with zeros.
  bool Rebuild() {
    std::string data;
    for (auto& [name, tensor] : header_.items()) {
      if (name == "__metadata__") continue;
      if (!IsTensor(tensor)) return false;
      const size_t begin = data.size();
      const std::string_view old = std::string_view(parts_.data).substr(tensor["data_offsets"][0].get<size_t>());
      const size_t bytes = *Elements(tensor["shape"]) * ElementBytes(tensor["dtype"]);
      data.append(old.substr(0, bytes));
      data.resize(begin + bytes);
      tensor["data_offsets"] = {begin, data.size()};
    }
    parts_.header = Dump(header_);
    parts_.data = data;
    return true;
  }

  // Where a single file keeps `key`; null when it does not.
  Json* Metadata(const char* key) {
    if (!header_.contains("__metadata__") || !header_["__metadata__"].is_object()) return nullptr;
    Json& metadata = header_["__metadata__"];
    return metadata.contains(key) && metadata[key].is_string() ? &metadata[key] : nullptr;
  }

  // Changes the JSON text of a directory's file or of a single file's metadata by `change`.
  template <typename Change>
  bool ChangeText(std::string& file, const char* key, const Change& change) {
    Json* const entry = parts_.is_directory ? nullptr : Metadata(key);
    if (!parts_.is_directory && !entry) return false;
    Json json = Parse(parts_.is_directory ? file : entry->get<std::string>());
    if (!json.is_structured()) return false;
    change(json);
    if (parts_.is_directory) {
      file = Dump(json);
    } else {
      *entry = Dump(json);
      parts_.header = Dump(header_);
    }
    return true;
  }

  bool ChangeConfig() {
    return ChangeText(parts_.config, "config", [&](Json& config) {
      if (!config.is_object()) return;
      const std::string key = Any(std::array{"n_embd", "n_head", "n_layer", "n_positions", "vocab_size", "n_inner",
                                             "activation_function", "layer_norm_epsilon", "tie_word_embeddings", "bias",
                                             "bos_token_id", "eos_token_id", "pad_token_id"});
      Json& value = config[key];
      if (value.is_number_unsigned() && Below(2)) {
        value = value.get<uint64_t>() + Any(std::array<uint64_t, 4>{1, 2, uint64_t(-1), 1u << 20});
      } else {
        value = Any(std::array<Json, 9>{nullptr, true, false, 0u, 1u, 2u, "relu", 0.5, Json::array({0u, 2u})});
      }
    });
  }

  bool ChangeVocabulary() {
    return ChangeText(parts_.vocabulary, "vocabulary", [&](Json& vocabulary) {
      const std::string entry = Any(std::array{"\n", "x", "€", "😀", "two", "", "a"});
      if (vocabulary.is_object()) {
        if (Below(2) && !vocabulary.empty()) vocabulary.erase(vocabulary.begin().key());
        if (Below(2)) vocabulary[entry] = vocabulary.size();
      } else {
        if (Below(2) && !vocabulary.empty()) vocabulary.erase(Below(vocabulary.size()));
        if (Below(2)) vocabulary.push_back(entry);
      }
    });
  }

  Parts& parts_;
  std::minstd_rand random_;
  Json header_;
  std::vector<std::string> names_;
};

}  // namespace

bool ChangeModel(Parts& parts, unsigned seed) { return Changer(parts, seed).Change(); }

}  // namespace octavo
