// A model that is ready to run: configuration, vocabulary and parameters, from a file, a directory or the library itself.
#ifndef OCTAVO_ENGINE_MODEL_H_
#define OCTAVO_ENGINE_MODEL_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config.h"
#include "engine/vocabulary.h"
#include "engine/weights.h"

namespace octavo {

struct PackedWeights;

// Immutable after loading; any number of threads may use one at once. Move it or pass it by reference: copies copy the parameters
// (but share the packed ones).
class Model {
 public:
  // A built-in model's name, or a path: a .safetensors file in the single-file form, or a directory in the Hugging Face layout
  // (config.json, model.safetensors, vocab.json). Throws Error that names file, tensor, what was expected and what was found.
  static Model Open(std::string_view name_or_path);
  static Model Load(const std::filesystem::path& path);

  // Throws Error that lists the names when there is no such model.
  static Model BuiltIn(std::string_view name);
  static std::vector<std::string> BuiltInNames();

  // The single-file form from memory; `where` names it in errors. The bytes are not needed afterwards.
  static Model Parse(std::span<const std::byte> file, std::string_view where);

  // The directory form from memory: the contents of its three files; `where` stands for the directory's path in errors.
  static Model ParseDirectory(std::span<const std::byte> tensors, std::string_view config, std::string_view vocabulary,
                              const std::filesystem::path& where);

  // The single-file form's bytes with weights as F32, [out, in]. Parse(Serialize()) is the same model.
  std::vector<std::byte> Serialize() const;

  // From parts that agree in shape, for tests and converters.
  Model(ModelConfig config, Vocabulary vocabulary, Weights weights, StorageInfo storage, TokenId start_token);

  const ModelConfig& config() const { return config_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const Weights& weights() const { return weights_; }
  const StorageInfo& storage() const { return storage_; }
  const PackedWeights& packed() const { return *packed_; }  // engine/packed_weights.h

  // What an empty prompt reads: the file's start character, else '\n', else id 0.
  TokenId start_token() const { return start_token_; }

 private:
  ModelConfig config_;
  Vocabulary vocabulary_;
  Weights weights_;
  StorageInfo storage_;
  TokenId start_token_;
  std::shared_ptr<const PackedWeights> packed_;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_MODEL_H_
