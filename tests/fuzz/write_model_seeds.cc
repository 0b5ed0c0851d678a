// Writes the seeds of the fuzz target: small golden models as they are, a model of a few numbers in every variant, and hostile files.
//
//     write_model_seeds GOLDEN_DIRECTORY OUT_DIRECTORY
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/safetensors.h"
#include "tests/fuzz/inputs.h"

namespace octavo {
namespace {

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class SeedFolder {
 public:
  explicit SeedFolder(std::filesystem::path path) : path_(std::move(path)) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  void Add(const std::string& name, std::string_view bytes) {
    std::ofstream file(path_ / name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) throw std::runtime_error(fmt::format("cannot write {}", (path_ / name).string()));
  }

 private:
  std::filesystem::path path_;
};

// What can differ between two files of one model: vocabulary a, b, €; context 2, width 2, one head, one layer.
struct Variant {
  std::string type = "F32", prefix, activation = "gelu_new";
  bool in_out = false, tied = false, biases = true, mask = false;
  size_t padding_rows = 0;
};

class VariantWriter {
 public:
  explicit VariantWriter(const Variant& variant) : variant_(variant) {
    Add("wte.weight", {kVocabulary + variant.padding_rows, kWidth});
    Add("wpe.weight", {2, kWidth});
    AddNorm("h.0.ln_1");
    AddLinear("h.0.attn.c_attn", kWidth, 3 * kWidth);
    if (variant.mask) Add("h.0.attn.bias", {1, 1, 2, 2});
    AddLinear("h.0.attn.c_proj", kWidth, kWidth);
    AddNorm("h.0.ln_2");
    AddLinear("h.0.mlp.c_fc", kWidth, 4 * kWidth);
    AddLinear("h.0.mlp.c_proj", 4 * kWidth, kWidth);
    AddNorm("ln_f");
    if (!variant.tied) Add("lm_head.weight", {kVocabulary + variant.padding_rows, kWidth});
  }

  std::string SingleFile() {
    return File({{"format", "octavo/1"}, {"config", Config()}, {"vocabulary", R"(["a","b","€"])"}, {"start", "b"}});
  }
  std::string Directory() { return DirectoryInput(Config(), R"({"a":0,"b":1,"€":2})", File({})); }

 private:
  static constexpr size_t kWidth = 2, kVocabulary = 3;

  std::string Config() const {
    return fmt::format(
        R"({{"n_embd":2,"n_head":1,"n_layer":1,"n_positions":2,"vocab_size":3,"activation_function":"{}",)"
        R"("layer_norm_epsilon":1e-05,"tie_word_embeddings":{},"bias":{},"eos_token_id":50256}})",
        variant_.activation, variant_.tied, variant_.biases);
  }

  std::string File(const std::map<std::string, std::string>& metadata) {
    for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].data = data_[i];
    return Text(WriteSafetensors(tensors_, metadata));
  }

  void Add(const std::string& name, const std::vector<size_t>& shape) {
    size_t count = 1;
    for (const size_t size : shape) count *= size;
    // Each element's top bytes: 0.5, 1, -0.5, …, different from its neighbours in every type.
    static const std::map<std::string, std::vector<uint64_t>> kPatterns = {
        {"F64", {0x3FE0000000000000, 0x3FF0000000000000, 0xBFE0000000000000}},
        {"F32", {0x3F000000, 0x3F800000, 0xBF000000}},
        {"F16", {0x3800, 0x3C00, 0xB800}},
        {"BF16", {0x3F00, 0x3F80, 0xBF00}}};
    const std::vector<uint64_t>& patterns = kPatterns.at(variant_.type);
    const size_t element_bytes = variant_.type == "F64" ? 8 : variant_.type == "F32" ? 4 : 2;
    std::vector<std::byte>& data = data_.emplace_back(count * element_bytes);
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(&data[i * element_bytes], &patterns[(i + data_.size()) % patterns.size()], element_bytes);
    }
    tensors_.push_back({variant_.prefix + name, variant_.type, shape, {}});
  }
  void AddNorm(const std::string& name) {
    Add(name + ".weight", {kWidth});
    if (variant_.biases) Add(name + ".bias", {kWidth});
  }
  void AddLinear(const std::string& name, size_t inputs, size_t outputs) {
    Add(name + ".weight", variant_.in_out ? std::vector{inputs, outputs} : std::vector{outputs, inputs});
    if (variant_.biases) Add(name + ".bias", {outputs});
  }

  const Variant variant_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<std::byte>> data_;
};

void AddVariants(SeedFolder& folder) {
  const Variant variants[] = {
      {},
      {.tied = true, .biases = false},
      {.type = "F16", .activation = "relu", .in_out = true},
      {.type = "BF16", .prefix = "_orig_mod.transformer.", .activation = "gelu", .mask = true},
      {.type = "F64", .prefix = "module.", .in_out = true, .tied = true, .padding_rows = 2},
  };
  for (size_t i = 0; const Variant& variant : variants) {
    VariantWriter writer(variant);
    folder.Add(fmt::format("variant-{}", i), writer.SingleFile());
    folder.Add(fmt::format("variant-directory-{}", i), writer.Directory());
    ++i;
  }
}

std::string FileWith(uint64_t header_bytes, std::string_view header, size_t data_bytes = 0) {
  return Container(header_bytes, header, std::string(data_bytes, '\0'));
}

// One tensor whose description ends in `rest`.
std::string TensorFile(std::string_view rest, size_t data_bytes) {
  const std::string header = fmt::format(R"({{"wte.weight":{{"dtype":{}}}}})", rest);
  return FileWith(header.size(), header, data_bytes);
}

void AddHostile(SeedFolder& folder) {
  const std::string deep = "{\"a\":" + std::string(3000, '['), no_format = R"({"__metadata__":{"format":null}})";
  const std::string files[] = {
      "",
      "1234567",
      FileWith(0, ""),
      FileWith(uint64_t{1} << 63, "{}"),
      FileWith(UINT64_MAX, "{}"),
      FileWith(3, "{}"),
      FileWith(2, "{}"),
      FileWith(2, "[]"),
      FileWith(8, "{\"a\":\xFF\"}"),
      FileWith(deep.size(), deep),
      FileWith(no_format.size(), no_format),
      TensorFile(R"("F32","shape":[4294967296,4294967296],"data_offsets":[0,0])", 0),
      TensorFile(R"("F32","shape":[32,8],"data_offsets":[0,65536])", 64),
      TensorFile(R"("F32","shape":[1],"data_offsets":[4,0])", 4),
      TensorFile(R"("F32","shape":[1],"data_offsets":[-4,0])", 4),
      TensorFile(R"("F32","shape":[1],"data_offsets":[0.0,4.0])", 4),
      TensorFile(R"("F32","shape":[1],"data_offsets":[0,1e300])", 4),
      TensorFile(R"("F32","shape":[1],"data_offsets":[0,4])", 3),
      TensorFile(R"("F32","shape":[0],"data_offsets":[0,0])", 0),
      TensorFile(R"("Q4","shape":[8],"data_offsets":[0,4])", 4),
      TensorFile(R"("F32","shape":[1],"shape":[1],"data_offsets":[0,4])", 4),
      DirectoryInput("", "", ""),
      DirectoryInput("{}", R"({"a":0,"b":7})", FileWith(2, "{}")),
      DirectoryInput(R"({"n_embd":2147483647,"n_head":1,"n_layer":2147483647,"n_positions":2147483647,"vocab_size":2})",
                     R"({"a":0,"b":0})", FileWith(2, "{}")),
      DirectoryInput(R"({"n_embd":2147483647,"n_head":1,"n_layer":2147483647,"n_positions":2147483647})", R"({"a":0})",
                     FileWith(2, "{}")),
  };
  for (size_t i = 0; const std::string& file : files) folder.Add(fmt::format("hostile-{:02}", i++), file);
}

// Headers and vocabularies as large as the fuzzer makes them, of members that take few bytes.
void AddLarge(SeedFolder& folder) {
  const auto many = [](const char* begin, const char* member, size_t count, const char* end) {
    std::string text(begin);
    for (size_t i = 0; i < count; ++i) text += fmt::format(fmt::runtime(member), i, i > 0 ? "," : "");
    return text + end;
  };
  const auto add = [&](const char* name, const std::string& header) {
    folder.Add(name, FileWith(header.size(), header));
  };
  add("large-tensors", many("{", R"({1}"t{0}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})", 10'000, "}"));
  add("large-objects", many(R"({"a":[)", "{1}{{}}", 200'000, "]}"));
  add("large-shape", many(R"({"a":{"dtype":"F32","data_offsets":[0,0],"shape":[)", "{1}1", 200'000, "]}}"));
  add("large-metadata", many(R"({"__metadata__":{)", R"({1}"{0}":"")", 60'000, "}}"));
  folder.Add("large-vocabulary", DirectoryInput("{}", many("{", R"({1}"{0}":{0})", 60'000, "}"), FileWith(2, "{}")));
}

// Those of some kilobytes: a fuzzer gets through few large inputs.
void AddGolden(SeedFolder& folder, const std::filesystem::path& golden) {
  for (const char* name : {"eos", "pad", "t1"}) {
    folder.Add(name, Text(ReadFileBytes(golden / fmt::format("{}.safetensors", name))));
  }
  const auto read = [&](const char* name) { return Text(ReadFileBytes(golden / "headonly" / name)); };
  folder.Add("headonly", DirectoryInput(read("config.json"), read("vocab.json"), read("model.safetensors")));
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: write_model_seeds GOLDEN_DIRECTORY OUT_DIRECTORY\n");
    return 2;
  }
  try {
    octavo::SeedFolder folder(argv[2]);
    octavo::AddGolden(folder, argv[1]);
    octavo::AddVariants(folder);
    octavo::AddHostile(folder);
    octavo::AddLarge(folder);
  } catch (const std::exception& error) {
    fmt::print(stderr, "write_model_seeds: {}\n", error.what());
    return 1;
  }
  return 0;
}
