// Loading and writing models in their two forms; see model.h.
#include "engine/model.h"

#include <algorithm>
#include <utility>

#include "engine/fail.h"
#include "engine/float_control.h"
#include "engine/json.h"
#include "engine/packed_weights.h"
#include "engine/safetensors.h"
#include "engine/suggest.h"
#include "engine/utf8.h"

// The built-in models, placed in the read-only data by embedded_models.S.
extern "C" {
extern const std::byte octavo_model_tiny_begin[];
extern const std::byte octavo_model_tiny_end[];
extern const std::byte octavo_model_small_begin[];
extern const std::byte octavo_model_small_end[];
}

namespace octavo {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "octavo/1";

// Above the number of characters that there are, so that what a hostile file takes is bounded.
constexpr size_t kMostEntries = size_t{1} << 21;

void CheckNumEntries(size_t count, std::string_view where) {
  if (count > kMostEntries) Fail("{} has more than {} entries, the most that are read", where, kMostEntries);
}

struct BuiltInModel {
  std::string_view name;
  const std::byte *begin, *end;
};
constexpr BuiltInModel kBuiltInModels[] = {{"tiny", octavo_model_tiny_begin, octavo_model_tiny_end},
                                           {"small", octavo_model_small_begin, octavo_model_small_end}};

// A JSON list of strings by id.
std::vector<std::string> ReadVocabularyList(std::string_view text, std::string_view where) {
  std::vector<std::string> entries;
  ParseJsonMembers(text, where, JsonKind::kList, "a list of strings", 2, [&](const std::string&, const Json& entry) {
    if (!entry.is_string()) Fail("{}: entry {} is {}; expected a string", where, entries.size(), entry.type_name());
    entries.push_back(entry.get_ref<const std::string&>());
    CheckNumEntries(entries.size(), where);
  });
  return entries;
}

// A JSON object, character -> id; the ids must be 0 … n-1, each once.
std::vector<std::string> ReadVocabularyObject(std::string_view text, std::string_view where) {
  struct Entry {
    std::string text;
    uint64_t id;
  };
  std::vector<Entry> found;
  // What is no id is named once it is known how many there are.
  std::string wrong, wrong_id;
  ParseJsonMembers(text, where, JsonKind::kObject, "an object of ids by character", 64,
                   [&](const std::string& entry, const Json& id) {
                     if (!id.is_number_unsigned() && wrong_id.empty()) {
                       wrong = entry;
                       wrong_id = id.is_structured() ? id.type_name() : id.dump();
                     }
                     found.push_back({entry, id.is_number_unsigned() ? id.get<uint64_t>() : 0});
                     CheckNumEntries(found.size(), where);
                   });
  std::sort(found.begin(), found.end(), [](const Entry& a, const Entry& b) { return a.text < b.text; });
  const auto twice =
      std::adjacent_find(found.begin(), found.end(), [](const Entry& a, const Entry& b) { return a.text == b.text; });
  if (twice != found.end()) Fail("{} has the key {} twice", where, Quote(twice->text));
  std::vector<std::string> entries(found.size());
  std::vector<bool> taken(found.size());
  const auto expect = [&](bool holds, const std::string& entry, const std::string& id) {
    if (!holds) Fail("{}: {} has id {}; expected each of 0 to {} once", where, Quote(entry), id, entries.size() - 1);
  };
  expect(wrong_id.empty(), wrong, wrong_id);
  for (Entry& entry : found) {
    expect(entry.id < entries.size() && !taken[entry.id], entry.text, std::to_string(entry.id));
    taken[entry.id] = true;
    entries[entry.id] = std::move(entry.text);
  }
  return entries;
}

TokenId FindStart(const std::map<std::string, std::string>& metadata, const Vocabulary& vocabulary,
                  std::string_view where) {
  if (const auto start = metadata.find("start"); start != metadata.end()) {
    for (size_t id = 0; id < vocabulary.size(); ++id) {
      if (vocabulary.entries()[id] == start->second) return static_cast<TokenId>(id);
    }
    Fail("{}: the start character {} is not in the vocabulary", where, Quote(start->second));
  }
  return vocabulary.Find(U'\n').value_or(0);
}

const std::string& RequireMetadata(const Safetensors& file, const char* key, std::string_view where) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) {
    Fail(
        "{}: __metadata__ has no {}; expected a model in the form {}, or a directory with config.json and vocab.json "
        "beside it",
        where, Quote(key), kFormat);
  }
  return found->second;
}

std::string ReadText(const std::filesystem::path& path) {
  constexpr uint64_t kLargest = uint64_t{1} << 26;  // the largest vocabulary takes some 20 MB
  std::error_code code;
  if (const uint64_t size = std::filesystem::file_size(path, code); !code && size > kLargest) {
    Fail("{} has {} bytes; expected at most {}", QuotePath(path.string()), size, kLargest);
  }
  const std::vector<std::byte> bytes = ReadFileBytes(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Model Build(const Safetensors& file, std::string_view config_text, std::vector<std::string> entries,
            std::string_view config_where, std::string_view vocabulary_where, std::string_view where) {
  const DefaultFloatControl control;  // parameters are converted to float
  ModelConfig config = ParseConfig(config_text, entries.size(), config_where);
  Vocabulary vocabulary(std::move(entries), config, vocabulary_where);
  StorageInfo storage;
  Weights weights = GatherWeights(file.tensors, config, where, storage);
  const TokenId start = FindStart(file.metadata, vocabulary, where);
  return Model(std::move(config), std::move(vocabulary), std::move(weights), std::move(storage), start);
}

constexpr const char *kTensorsFile = "model.safetensors", *kConfigFile = "config.json", *kVocabularyFile = "vocab.json";

// Appends a tensor that refers to `values`, or to a transposed copy kept in `copies`.
class TensorList {
 public:
  void Add(std::string name, const std::vector<float>& values, std::vector<size_t> shape) {
    tensors_.push_back({std::move(name), "F32", std::move(shape), std::as_bytes(std::span(values))});
  }
  // [inputs, outputs] in memory, [outputs, inputs] in the file.
  void AddMatrix(std::string name, const std::vector<float>& matrix, size_t inputs, size_t outputs) {
    std::vector<float>& copy = *copies_.emplace_back(std::make_unique<std::vector<float>>(matrix.size()));
    for (size_t i = 0; i < inputs; ++i) {
      for (size_t o = 0; o < outputs; ++o) copy[o * inputs + i] = matrix[i * outputs + o];
    }
    Add(std::move(name), copy, {outputs, inputs});
  }
  void AddNorm(const std::string& name, const Norm& norm, bool bias) {
    Add(name + ".weight", norm.gain, {norm.gain.size()});
    if (bias) Add(name + ".bias", norm.bias, {norm.bias.size()});
  }
  void AddLinear(const std::string& name, const Linear& linear, bool bias) {
    const size_t outputs = linear.bias.size();
    AddMatrix(name + ".weight", linear.weight, linear.weight.size() / outputs, outputs);
    if (bias) Add(name + ".bias", linear.bias, {outputs});
  }
  std::span<const Tensor> tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<std::unique_ptr<std::vector<float>>> copies_;
};

}  // namespace

Model::Model(ModelConfig config, Vocabulary vocabulary, Weights weights, StorageInfo storage, TokenId start_token)
    : config_(std::move(config)),
      vocabulary_(std::move(vocabulary)),
      weights_(std::move(weights)),
      storage_(std::move(storage)),
      start_token_(start_token),
      packed_(std::make_shared<const PackedWeights>(weights_)) {}

Model Model::Parse(std::span<const std::byte> bytes, std::string_view where) {
  const Safetensors file = ParseSafetensors(bytes, where);
  if (const std::string& format = RequireMetadata(file, "format", where); format != kFormat) {
    Fail("{}: __metadata__ says format {}; expected {}, or a directory with config.json and vocab.json beside it",
         where, Quote(format), kFormat);
  }
  const std::string vocabulary_where = fmt::format("{}: vocabulary", where);
  return Build(file, RequireMetadata(file, "config", where),
               ReadVocabularyList(RequireMetadata(file, "vocabulary", where), vocabulary_where),
               fmt::format("{}: config", where), vocabulary_where, where);
}

Model Model::ParseDirectory(std::span<const std::byte> tensors, std::string_view config, std::string_view vocabulary,
                            const std::filesystem::path& where) {
  const std::string tensors_where = QuotePath((where / kTensorsFile).string());
  const std::string vocabulary_where = QuotePath((where / kVocabularyFile).string());
  const Safetensors file = ParseSafetensors(tensors, tensors_where);
  return Build(file, config, ReadVocabularyObject(vocabulary, vocabulary_where),
               QuotePath((where / kConfigFile).string()), vocabulary_where, tensors_where);
}

Model Model::Load(const std::filesystem::path& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    const std::vector<std::byte> tensors = ReadSafetensorsBytes(path / kTensorsFile);
    return ParseDirectory(tensors, ReadText(path / kConfigFile), ReadText(path / kVocabularyFile), path);
  }
  const std::vector<std::byte> bytes = ReadSafetensorsBytes(path);
  return Parse(bytes, QuotePath(path.string()));
}

std::vector<std::string> Model::BuiltInNames() {
  std::vector<std::string> names;
  for (const BuiltInModel& model : kBuiltInModels) names.emplace_back(model.name);
  return names;
}

Model Model::BuiltIn(std::string_view name) {
  for (const BuiltInModel& model : kBuiltInModels) {
    if (model.name == name) return Parse({model.begin, model.end}, fmt::format("built-in model {}", name));
  }
  Fail("there is no built-in model {}; there are: {}{}", Quote(name), fmt::join(BuiltInNames(), ", "),
       DidYouMean(name, BuiltInNames()));
}

Model Model::Open(std::string_view name_or_path) {
  for (const std::string& name : BuiltInNames()) {
    if (name == name_or_path) return BuiltIn(name);
  }
  std::error_code code;
  if (std::filesystem::status(name_or_path, code).type() == std::filesystem::file_type::not_found) {
    Fail("model {}: there is no such file or directory, nor a built-in model of that name ({}){}",
         QuotePath(name_or_path), fmt::join(BuiltInNames(), ", "), DidYouMean(name_or_path, BuiltInNames()));
  }
  return Load(name_or_path);
}

std::vector<std::byte> Model::Serialize() const {
  const bool bias = storage_.biases;
  ModelConfig config = config_;
  config.tied = storage_.tied;
  config.biases = bias;
  TensorList list;
  list.Add("wte.weight", weights_.wte, {config.vocabulary_size, config.width});
  list.Add("wpe.weight", weights_.wpe, {config.context_length, config.width});
  for (size_t i = 0; i < config.num_layers; ++i) {
    const LayerWeights& layer = weights_.layers[i];
    const std::string name = fmt::format("h.{}.", i);
    list.AddNorm(name + "ln_1", layer.ln_1, bias);
    list.AddLinear(name + "attn.c_attn", layer.c_attn, bias);
    list.AddLinear(name + "attn.c_proj", layer.attn_proj, bias);
    list.AddNorm(name + "ln_2", layer.ln_2, bias);
    list.AddLinear(name + "mlp.c_fc", layer.c_fc, bias);
    list.AddLinear(name + "mlp.c_proj", layer.mlp_proj, bias);
  }
  list.AddNorm("ln_f", weights_.ln_f, bias);
  if (!storage_.tied) list.AddMatrix("lm_head.weight", weights_.lm_head, config.width, config.vocabulary_size);
  return WriteSafetensors(list.tensors(), {{"format", std::string(kFormat)},
                                           {"config", WriteConfig(config)},
                                           {"vocabulary", Json(vocabulary_.entries()).dump()},
                                           {"start", vocabulary_.entries()[static_cast<size_t>(start_token_)]}});
}

}  // namespace octavo
