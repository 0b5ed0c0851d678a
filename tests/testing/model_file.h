// A model in the single-file form, taken apart: tests damage its parts and put it together again.
#ifndef OCTAVO_TESTS_TESTING_MODEL_FILE_H_
#define OCTAVO_TESTS_TESTING_MODEL_FILE_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model.h"
#include "engine/safetensors.h"

namespace octavo::test {

template <typename Value>
std::vector<std::byte> BytesOf(const std::vector<Value>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(Value));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename Value>
std::vector<Value> ValuesOf(const std::vector<std::byte>& bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A container's bytes from a header's text and data, with nothing checked.
inline std::vector<std::byte> RawContainer(std::string_view header, size_t data_bytes) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

struct Part {
  std::string name, type;
  std::vector<size_t> shape;
  std::vector<std::byte> data;
};

class ModelFile {
 public:
  explicit ModelFile(const Model& model) {
    const std::vector<std::byte> bytes = model.Serialize();
    const Safetensors file = ParseSafetensors(bytes, "a test's model");
    metadata = file.metadata;
    for (const Tensor& tensor : file.tensors) {
      parts.push_back({tensor.name, tensor.type, tensor.shape, {tensor.data.begin(), tensor.data.end()}});
    }
  }

  std::vector<std::byte> Bytes() const {
    std::vector<Tensor> tensors;
    for (const Part& part : parts) tensors.push_back({part.name, part.type, part.shape, part.data});
    return WriteSafetensors(tensors, metadata);
  }
  Model Parse() const { return Model::Parse(Bytes(), "the file"); }

  Part& At(std::string_view name) {
    for (Part& part : parts) {
      if (part.name == name) return part;
    }
    throw std::logic_error("a test asks for a tensor that is not there: " + std::string(name));
  }
  void Remove(std::string_view name) {
    At(name);
    std::erase_if(parts, [name](const Part& part) { return part.name == name; });
  }

  nlohmann::json Config() const { return nlohmann::json::parse(metadata.at("config")); }
  void SetConfig(const std::string& key, const nlohmann::json& value) {
    nlohmann::json config = Config();
    config[key] = value;
    metadata["config"] = config.dump();
  }
  void EraseConfig(const std::string& key) {
    nlohmann::json config = Config();
    config.erase(key);
    metadata["config"] = config.dump();
  }

  // [rows, columns] → [columns, rows]. The element may have any size.
  void Transpose(std::string_view name) {
    Part& part = At(name);
    const size_t rows = part.shape.at(0), columns = part.shape.at(1), size = part.data.size() / (rows * columns);
    std::vector<std::byte> out(part.data.size());
    for (size_t i = 0; i < rows * columns; ++i) {
      const size_t to = i % columns * rows + i / columns;
      std::memcpy(out.data() + to * size, part.data.data() + i * size, size);
    }
    part.data = std::move(out);
    part.shape = {columns, rows};
  }

  // Rounds an F32 tensor to multiples of 1/64 below 2, which every float type holds exactly.
  void Coarsen(std::string_view name) {
    std::vector<float> values = ValuesOf<float>(At(name).data);
    for (float& x : values) x = static_cast<float>(static_cast<int>(std::clamp(x, -1.9f, 1.9f) * 64)) / 64;
    At(name).data = BytesOf(values);
  }

  // Stores an F32 tensor as another type, which must hold its values exactly as normal numbers or zeros.
  void StoreAs(std::string_view name, const std::string& type) {
    Part& part = At(name);
    const std::vector<float> values = ValuesOf<float>(part.data);
    if (type == "F64") {
      part.data = BytesOf(std::vector<double>(values.begin(), values.end()));
    } else {
      std::vector<uint16_t> halves;
      for (const float x : values) {
        const auto bits = std::bit_cast<uint32_t>(x);
        const uint32_t f16 = (bits >> 16 & 0x8000) | (x == 0 ? 0 : (bits >> 13 & 0x3FFFF) - (112u << 10));
        halves.push_back(static_cast<uint16_t>(type == "F16" ? f16 : bits >> 16));
      }
      part.data = BytesOf(halves);
    }
    part.type = type;
  }

  std::vector<Part> parts;
  std::map<std::string, std::string> metadata;
};

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_MODEL_FILE_H_
