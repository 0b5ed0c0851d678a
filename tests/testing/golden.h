// The golden data: models, texts, and what PyTorch computed from them in float64 (tests/data/make_golden.py).
#ifndef OCTAVO_TESTS_TESTING_GOLDEN_H_
#define OCTAVO_TESTS_TESTING_GOLDEN_H_

#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "engine/model.h"
#include "engine/safetensors.h"
#include "tests/testing/model_file.h"

namespace octavo::test {

inline const std::string kGoldenFolder = OCTAVO_TEST_DATA "/golden/";

inline std::vector<nlohmann::json> ReadGoldenManifest() {
  std::ifstream file(kGoldenFolder + "manifest.json");
  return file ? nlohmann::json::parse(file).get<std::vector<nlohmann::json>>() : std::vector<nlohmann::json>();
}

inline Model OpenGolden(const nlohmann::json& entry) {
  const auto name = entry["model"].get<std::string>();
  return name == "tiny" ? Model::BuiltIn(name) : Model::Load(kGoldenFolder + name);
}

struct GoldenValues {
  std::vector<TokenId> tokens;
  std::vector<double> logits;     // [T, vocabulary]
  std::vector<double> attention;  // [layers, heads, positions, T]
  std::vector<size_t> positions;  // whose attention there is: all, or some of a large model's

  // Those rows of [layers, heads, T, T].
  template <typename Value>
  std::vector<Value> RowsOf(const std::vector<Value>& whole) const {
    const size_t length = tokens.size();
    std::vector<Value> rows;
    for (size_t head = 0; head < whole.size(); head += length * length) {
      for (const size_t t : positions) {
        const auto row = whole.begin() + static_cast<std::ptrdiff_t>(head + t * length);
        rows.insert(rows.end(), row, row + static_cast<std::ptrdiff_t>(length));
      }
    }
    return rows;
  }
};

inline GoldenValues ReadGolden(const nlohmann::json& entry) {
  const std::vector<std::byte> bytes = ReadFileBytes(kGoldenFolder + entry["expected"].get<std::string>());
  GoldenValues golden;
  for (const Tensor& tensor : ParseSafetensors(bytes, "the golden file").tensors) {
    const std::vector<std::byte> data(tensor.data.begin(), tensor.data.end());
    if (tensor.name == "tokens") {
      golden.tokens = ValuesOf<TokenId>(data);
    } else if (tensor.name == "positions") {
      for (const int32_t position : ValuesOf<int32_t>(data)) golden.positions.push_back(static_cast<size_t>(position));
    } else if (tensor.type == "F64") {
      (tensor.name == "logits" ? golden.logits : golden.attention) = ValuesOf<double>(data);
    } else {
      const std::vector<float> floats = ValuesOf<float>(data);
      golden.attention.assign(floats.begin(), floats.end());
    }
  }
  if (golden.positions.empty()) {
    golden.positions.resize(golden.tokens.size());
    std::iota(golden.positions.begin(), golden.positions.end(), size_t{0});
  }
  return golden;
}

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_GOLDEN_H_
