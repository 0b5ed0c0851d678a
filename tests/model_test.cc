// Whole models: both forms of files, the vocabulary against the weights, sizes that must be refused before anything is taken, start
// characters, built-in models.
#include "engine/model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/reference_pass.h"
#include "tests/testing/allocations.h"
#include "tests/testing/compare.h"
#include "tests/testing/errors.h"
#include "tests/testing/model_file.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

using Json = nlohmann::json;

std::vector<double> LogitsOf(const Model& model) {
  ReferencePass<double> pass(model);
  const auto logits = pass.ReadAll(std::vector<TokenId>{0, 1, 2, 1});
  return {logits.begin(), logits.end()};
}

::testing::AssertionResult Refused(const ModelFile& file, std::initializer_list<std::string_view> parts) {
  const std::vector<std::byte> bytes = file.Bytes();
  if (const auto named = Fails([&] { Model::Parse(bytes, "the file"); }, {"the file"}); !named) return named;
  const AllocationMeter meter;
  const auto result = Fails([&] { Model::Parse(bytes, "the file"); }, parts);
  if (meter.largest_bytes() > 4 * bytes.size() + 65'536) {
    return ::testing::AssertionFailure() << "took " << meter.largest_bytes() << " bytes at once";
  }
  return result;
}

TEST(ModelTest, SerializeIsReadBack) {
  for (ModelShape shape :
       {M8Shape(), ModdShape(), ModelShape{Characters("ab"), 1, 1, 3, 3, 5, ActivationKind::kRelu}}) {
    for (const bool tied : {false, true}) {
      shape.tied = tied;
      shape.biases = !tied;
      const Model model = RandomModel(shape);
      const std::vector<std::byte> bytes = model.Serialize();
      const Model read = Model::Parse(bytes, "the file");
      EXPECT_EQ(read.Serialize(), bytes);
      EXPECT_EQ(WriteConfig(read.config()), WriteConfig(model.config()));
      EXPECT_EQ(read.vocabulary().entries(), shape.vocabulary);
      EXPECT_EQ(read.start_token(), model.start_token());
      EXPECT_EQ(read.storage().num_parameters, model.storage().num_parameters);
      EXPECT_TRUE(SameBits(read.weights().lm_head, model.weights().lm_head));
      EXPECT_TRUE(SameBits(read.weights().wte, model.weights().wte));
      EXPECT_TRUE(
          SameBits(read.weights().layers.back().mlp_proj.weight, model.weights().layers.back().mlp_proj.weight));
    }
  }
}

TEST(ModelTest, StartCharacter) {
  ModelFile file(RandomModel({Characters("ab\nc"), 4, 1, 1, 4}));
  EXPECT_EQ(file.Parse().start_token(), 2);
  file.metadata["start"] = "c";
  EXPECT_EQ(file.Parse().start_token(), 3);
  file.metadata["start"] = "x";
  EXPECT_TRUE(Refused(file, {"start character 'x' is not in the vocabulary"}));
  file.metadata.erase("start");
  EXPECT_EQ(file.Parse().start_token(), 2) << "the line end";
  EXPECT_EQ(ModelFile(RandomModel({Characters("abc"), 4, 1, 1, 4})).Parse().start_token(), 0);
}

TEST(ModelTest, MetadataIsRequired) {
  const ModelFile good(RandomModel(M8Shape()));
  for (const char* key : {"format", "config", "vocabulary"}) {
    ModelFile file = good;
    file.metadata.erase(key);
    EXPECT_TRUE(Refused(file, {"'" + std::string(key) + "'", "config.json and vocab.json"}));
  }
  ModelFile file = good;
  file.metadata["format"] = "pt";
  EXPECT_TRUE(Refused(file, {"format 'pt'", "octavo/1"}));
  for (const char* config : {"", "[]", "{", "null"}) {
    file = good;
    file.metadata["config"] = config;
    EXPECT_TRUE(Refused(file, {"the file: config"}));
  }
  for (const char* vocabulary : {"", "{}", "[", "\"abc\"", "[1,2,3,4,5]", "[\"a\",null]"}) {
    file = good;
    file.metadata["vocabulary"] = vocabulary;
    EXPECT_TRUE(Refused(file, {"the file: vocabulary"})) << vocabulary;
  }
}

// ---- vocabulary against weights ----

ModelFile WithVocabulary(const std::vector<std::string>& entries, const Json& vocab_size) {
  ModelFile file(RandomModel(M8Shape()));
  file.metadata["vocabulary"] = Json(entries).dump();
  file.SetConfig("vocab_size", vocab_size);
  return file;
}

TEST(ModelTest, AVocabularyThatDoesNotFitIsRefused) {
  const std::vector<std::string> longer = Characters("\n abcd"), shorter = Characters("\n ab");
  EXPECT_TRUE(Refused(WithVocabulary(longer, 5), {"6 entries", "vocab_size is 5"}));
  EXPECT_TRUE(Refused(WithVocabulary(shorter, 5), {"4 entries", "vocab_size is 5"}));
  EXPECT_TRUE(Refused(WithVocabulary(longer, 6), {"weight' has shape [5, 16]", "[6, 16]"}));
  EXPECT_TRUE(Refused(WithVocabulary(longer, nullptr), {"weight' has shape [5, 16]", "[6, 16]"}));
  // Padding is for configurations that say so; nobody says here that one row too many is padding.
  EXPECT_TRUE(Refused(WithVocabulary(shorter, nullptr), {"weight' has shape [5, 16]", "[4, 16]"}));
  EXPECT_TRUE(Refused(WithVocabulary({}, nullptr), {"vocab_size"}));
}

TEST(ModelTest, PaddingRowsBelowAGivenSizeDoNotExist) {
  const Model model = RandomModel(M8Shape());
  const ModelFile padded = WithVocabulary(Characters("\n ab"), 4);
  const Model read = padded.Parse();
  EXPECT_EQ(read.storage().padding_rows, 1u);
  EXPECT_EQ(read.storage().num_parameters, model.storage().num_parameters - 2 * 16);
  EXPECT_EQ(read.vocabulary().size(), 4u);
  EXPECT_EQ(read.weights().wte.size(), 4u * 16);
  EXPECT_EQ(read.weights().lm_head.size(), 4u * 16);
  const std::vector<double> all = LogitsOf(model), logits = LogitsOf(read);
  ASSERT_EQ(logits.size(), 16u);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(logits[i], all[i / 4 * 5 + i % 4]);
}

// ---- sizes ----

TEST(ModelTest, SizesAreCheckedBeforeMemoryIsTaken) {
  const ModelFile good(RandomModel(M8Shape()));
  const auto refused = [&](const std::vector<std::pair<std::string, Json>>& settings,
                           std::initializer_list<std::string_view> parts) {
    ModelFile file = good;
    for (const auto& [key, value] : settings) file.SetConfig(key, value);
    return Refused(file, parts);
  };
  EXPECT_TRUE(refused({{"n_embd", 2147483648}}, {"n_embd is 2147483648", "1 to 2147483647"}));
  EXPECT_TRUE(refused({{"n_embd", 2147483646}}, {"bytes", "the file holds 27520 bytes"}));
  EXPECT_TRUE(refused({{"n_embd", 2147483646}, {"n_layer", 2147483647}, {"n_inner", 2147483647}}, {"bytes"}));
  EXPECT_TRUE(refused({{"n_layer", 2147483647}}, {"bytes", "the file holds 27520 bytes"}));
  EXPECT_TRUE(refused({{"n_positions", 2147483647}}, {"takes 1.374e+11 bytes", "the file holds 27520 bytes"}));
  EXPECT_TRUE(refused({{"n_inner", 2147483647}}, {"bytes"}));
  EXPECT_TRUE(refused({{"n_head", 0}}, {"n_head is 0"}));
  EXPECT_TRUE(refused({{"n_head", 3}}, {"n_head 3 does not divide n_embd 16"}));
  EXPECT_TRUE(refused({{"n_positions", 0}}, {"n_positions is 0"}));
  EXPECT_TRUE(refused({{"n_layer", 0}}, {"n_layer is 0"}));
  EXPECT_TRUE(refused({{"n_positions", 9}}, {"'wpe.weight' has shape [8, 16]; expected [9, 16]"}));
  EXPECT_TRUE(refused({{"n_positions", 7}}, {"'wpe.weight' has shape [8, 16]; expected [7, 16]"}));
}

// ---- directories ----

class DirectoryTest : public ::testing::Test {
 protected:
  DirectoryTest() {
    std::filesystem::create_directories(folder_);
    ModelFile file(model_);
    file.metadata = {{"format", "pt"}};
    const std::vector<std::byte> bytes = file.Bytes();
    Write("model.safetensors", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    Write("config.json", WriteConfig(model_.config()));
    Write("vocab.json", R"({"a": 2, "\n": 0, " ": 1, "c": 4, "b": 3})");
  }
  ~DirectoryTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  ::testing::AssertionResult RefusedVocabulary(const std::string& content,
                                               std::initializer_list<std::string_view> parts) {
    Write("vocab.json", content);
    if (const auto named = Fails([&] { Model::Load(folder_); }, {"vocab.json'"}); !named) return named;
    return Fails([&] { Model::Load(folder_); }, parts);
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("octavo_model_test_{}", getpid());
  const Model model_ = RandomModel(M8Shape());
};

TEST_F(DirectoryTest, HoldsTheSameModel) {
  const Model read = Model::Open(folder_.string());
  EXPECT_EQ(read.vocabulary().entries(), model_.vocabulary().entries());
  EXPECT_EQ(read.start_token(), 0);
  EXPECT_TRUE(SameBits(LogitsOf(read), LogitsOf(model_)));
  EXPECT_EQ(read.Serialize(), model_.Serialize());
}

TEST_F(DirectoryTest, VocabularyIdsMustBeEachOnce) {
  EXPECT_TRUE(RefusedVocabulary(R"({"a":0,"b":1,"c":2,"d":3,"e":3})", {"'e' has id 3", "0 to 4 once"}));
  EXPECT_TRUE(RefusedVocabulary(R"({"a":0,"b":1,"c":2,"d":3,"e":5})", {"'e' has id 5"}));
  EXPECT_TRUE(RefusedVocabulary(R"({"a":0,"b":1,"c":2,"d":3,"e":-1})", {"'e' has id -1"}));
  EXPECT_TRUE(RefusedVocabulary(R"({"a":0,"b":1,"c":2,"d":3,"e":1.5})", {"'e' has id 1.5"}));
  EXPECT_TRUE(RefusedVocabulary(R"({"a":0,"b":1,"c":2,"d":3,"e":"4"})", {"'e' has id \"4\""}));
  EXPECT_TRUE(RefusedVocabulary(R"({"a":0,"b":1,"c":2,"d":3,"e":[4]})", {"'e' has id array"}));
  EXPECT_TRUE(RefusedVocabulary(R"({"a":0,"a":1})", {"'a' twice"}));
  EXPECT_TRUE(RefusedVocabulary(R"(["a","b","c","d","e"])", {"expected an object"}));
  EXPECT_TRUE(RefusedVocabulary(R"({"a":0,"b":1,"c":2,"d":3,"Ġthe":4})", {"'Ġthe'", "4 code points"}));
  EXPECT_TRUE(RefusedVocabulary("{", {"not valid JSON"}));
}

TEST_F(DirectoryTest, AVocabularyThatDoesNotFitIsRefused) {
  const std::string longer = R"({"a":0,"b":1,"c":2,"d":3,"e":4,"f":5})", shorter = R"({"a":0,"b":1,"c":2,"d":3})";
  EXPECT_TRUE(RefusedVocabulary(longer, {"6 entries", "vocab_size is 5"}));
  EXPECT_TRUE(RefusedVocabulary(shorter, {"4 entries", "vocab_size is 5"}));
  // A configuration that agrees with it, or has no say; only one that says fewer makes the last row padding.
  const auto refused = [&](const std::string& vocabulary, const Json& vocab_size, std::string_view expected) {
    Json config = Json::parse(WriteConfig(model_.config()));
    config.erase("vocab_size");
    if (!vocab_size.is_null()) config["vocab_size"] = vocab_size;
    Write("config.json", config.dump());
    Write("vocab.json", vocabulary);
    return Fails([&] { Model::Load(folder_); }, {"model.safetensors'", "weight' has shape [5, 16]", expected});
  };
  EXPECT_TRUE(refused(longer, 6, "[6, 16]"));
  EXPECT_TRUE(refused(longer, nullptr, "[6, 16]"));
  EXPECT_TRUE(refused(shorter, nullptr, "[4, 16]"));
  EXPECT_FALSE(refused(shorter, 4, "[4, 16]"));
}

TEST_F(DirectoryTest, MissingFilesAreNamed) {
  for (const char* name : {"model.safetensors", "config.json", "vocab.json"}) {
    std::filesystem::rename(folder_ / name, folder_ / "hidden");
    EXPECT_TRUE(Fails([&] { Model::Load(folder_); }, {std::string(name) + "'", "no such file"}));
    std::filesystem::rename(folder_ / "hidden", folder_ / name);
  }
}

TEST_F(DirectoryTest, ATensorFileAloneNeedsTheSingleFileForm) {
  EXPECT_TRUE(Fails([&] { Model::Load(folder_ / "model.safetensors"); }, {"model.safetensors'", "octavo/1"}));
}

// ---- names ----

TEST(ModelTest, UnknownNamesListTheBuiltInOnes) {
  EXPECT_TRUE(Fails([] { Model::Open("nowhere/at/all"); }, {"'nowhere/at/all'", "tiny, small"}));
  EXPECT_TRUE(Fails([] { Model::BuiltIn("huge"); }, {"'huge'", "tiny, small"}));
  EXPECT_TRUE(Fails([] { Model::Open("bad\nname"); }, {"'bad\\nname'"}));
  EXPECT_EQ(Model::BuiltInNames(), (std::vector<std::string>{"tiny", "small"}));
}

}  // namespace
}  // namespace octavo::test
