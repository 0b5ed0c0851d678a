// From a file's tensors to a model's weights: ties, orientations, names, biases, types, sizes, and every contradiction by name.
#include "engine/weights.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/reference_pass.h"
#include "tests/testing/compare.h"
#include "tests/testing/errors.h"
#include "tests/testing/model_file.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

// Tells all parameters of a small model apart: no two tensors have one shape by chance, width and inner width are odd.
ModelShape SmallShape() { return {Characters("\nabcdef"), 5, 2, 3, 9, 11}; }

std::vector<double> LogitsOf(const Model& model) {
  ReferencePass<double> pass(model);
  std::vector<TokenId> tokens;
  for (size_t t = 0; t < model.config().context_length; ++t) {
    tokens.push_back(static_cast<TokenId>(t % model.vocabulary().size()));
  }
  const auto logits = pass.ReadAll(tokens);
  return {logits.begin(), logits.end()};
}

const std::vector<std::string>& MatrixNames() {
  static const std::vector<std::string> names = {
      "h.0.attn.c_attn.weight", "h.0.attn.c_proj.weight", "h.0.mlp.c_fc.weight", "h.0.mlp.c_proj.weight",
      "h.1.attn.c_attn.weight", "h.1.attn.c_proj.weight", "h.1.mlp.c_fc.weight", "h.1.mlp.c_proj.weight"};
  return names;
}

class WeightsTest : public ::testing::Test {
 protected:
  const Model model_ = RandomModel(SmallShape());
  const std::vector<double> logits_ = LogitsOf(model_);
  ModelFile file_{model_};

  // The file loads, and is the same model.
  ::testing::AssertionResult Same() const { return SameBits(LogitsOf(file_.Parse()), logits_); }
  ::testing::AssertionResult Refused(std::initializer_list<std::string_view> parts) const {
    if (const auto named = Fails([&] { file_.Parse(); }, {"the file"}); !named) return named;
    return Fails([&] { file_.Parse(); }, parts);
  }
  void Rename(const std::string& prefix, const std::string& except = "-") {
    for (Part& part : file_.parts) {
      if (part.name != except) part.name = prefix + part.name;
    }
  }
};

TEST_F(WeightsTest, ComeBackFromAFile) {
  EXPECT_TRUE(Same());
  const StorageInfo info = file_.Parse().storage();
  EXPECT_EQ(info.type, "F32");
  EXPECT_EQ(info.orientation, "[out, in]");
  EXPECT_FALSE(info.tied);
  EXPECT_TRUE(info.biases);
  EXPECT_EQ(info.padding_rows, 0u);
  EXPECT_EQ(info.num_parameters, model_.storage().num_parameters);
}

// ---- tied and untied heads ----

class TiedTest : public WeightsTest {
 protected:
  TiedTest() {
    ModelShape shape = SmallShape();
    shape.tied = true;
    tied_.emplace_back(RandomModel(shape));
    file_ = ModelFile(tied_[0]);
  }
  void AddHead(const std::vector<float>& values) {
    file_.parts.push_back({"lm_head.weight", "F32", {7, 9}, BytesOf(values)});
  }
  std::vector<float> Wte() { return ValuesOf<float>(file_.At("wte.weight").data); }
  // Loads, tied, with as many parameters.
  ::testing::AssertionResult Tied() const {
    const Model model = file_.Parse();
    if (!model.storage().tied) return ::testing::AssertionFailure() << "not tied";
    if (model.storage().num_parameters != CountParameters(tied_[0].config()))
      return ::testing::AssertionFailure() << "counted twice";
    return SameBits(LogitsOf(model), LogitsOf(tied_[0]));
  }
  std::vector<Model> tied_;
};

TEST_F(TiedTest, EmbeddingOnly) {
  EXPECT_TRUE(Tied());
  file_.EraseConfig("tie_word_embeddings");
  EXPECT_TRUE(Tied());
  file_.SetConfig("tie_word_embeddings", false);
  EXPECT_TRUE(Refused({"'lm_head.weight' is missing", "not tied to 'wte.weight'"}));
}

TEST_F(TiedTest, HeadOnly) {
  file_.At("wte.weight").name = "lm_head.weight";
  EXPECT_TRUE(Tied());
  file_.EraseConfig("tie_word_embeddings");
  EXPECT_TRUE(Tied());
  file_.SetConfig("tie_word_embeddings", false);
  EXPECT_TRUE(Refused({"'wte.weight' is missing", "'lm_head.weight'"}));
}

TEST_F(TiedTest, BothEqual) {
  AddHead(Wte());
  for (const nlohmann::json& flag : {nlohmann::json(true), nlohmann::json(false), nlohmann::json(nullptr)}) {
    file_.SetConfig("tie_word_embeddings", flag);
    EXPECT_TRUE(Tied()) << flag;
  }
}

TEST_F(TiedTest, BothDifferent) {
  std::vector<float> head = Wte();
  head[62] += 1;
  AddHead(head);
  EXPECT_TRUE(Refused({"ties the head", "'wte.weight' and 'lm_head.weight' differ"}));
  for (const nlohmann::json& flag : {nlohmann::json(false), nlohmann::json(nullptr)}) {
    file_.SetConfig("tie_word_embeddings", flag);
    const Model model = file_.Parse();
    EXPECT_FALSE(model.storage().tied);
    EXPECT_EQ(model.storage().num_parameters, CountParameters(tied_[0].config()) + 63);
    EXPECT_FALSE(SameBits(LogitsOf(model), LogitsOf(tied_[0])));
  }
}

TEST_F(TiedTest, Neither) {
  file_.Remove("wte.weight");
  for (const nlohmann::json& flag : {nlohmann::json(true), nlohmann::json(false), nlohmann::json(nullptr)}) {
    file_.SetConfig("tie_word_embeddings", flag);
    EXPECT_TRUE(Refused({"'wte.weight' and 'lm_head.weight' are both missing"}));
  }
}

// ---- orientation ----

TEST_F(WeightsTest, InOutIsTheSameModel) {
  for (const std::string& name : MatrixNames()) file_.Transpose(name);
  EXPECT_TRUE(Same());
  EXPECT_EQ(file_.Parse().storage().orientation, "[in, out]");
}

// c_attn decides; each of the others against it is a contradiction, in both directions.
TEST_F(WeightsTest, OrientationsMustAgree) {
  for (const bool in_out : {false, true}) {
    for (const std::string& name : MatrixNames()) {
      file_.Transpose(name);
      if (name.ends_with("attn.c_proj.weight")) {
        EXPECT_FALSE(Same()) << "square: follows the others, so that these are other values";
      } else if (name == "h.0.attn.c_attn.weight") {
        EXPECT_TRUE(Refused({"'h.0.mlp.c_fc.weight'", "'h.0.attn.c_attn.weight'", "all must agree"})) << name;
      } else {
        EXPECT_TRUE(Refused({"'" + name + "' is stored", "'h.0.attn.c_attn.weight'", "all must agree"})) << name;
      }
      file_.Transpose(name);
    }
    EXPECT_TRUE(Same());
    for (const std::string& name : MatrixNames()) file_.Transpose(name);
    EXPECT_EQ(file_.Parse().storage().orientation, in_out ? "[out, in]" : "[in, out]");
  }
}

// An inner width equal to the width makes all but c_attn square.
TEST(WeightsShapes, SquareMatricesFollowCAttn) {
  ModelShape shape = SmallShape();
  shape.inner_width = shape.width;
  const Model model = RandomModel(shape);
  ModelFile file(model);
  EXPECT_TRUE(SameBits(LogitsOf(file.Parse()), LogitsOf(model)));
  for (const std::string& name : MatrixNames()) file.Transpose(name);
  EXPECT_TRUE(SameBits(LogitsOf(file.Parse()), LogitsOf(model)));
}

TEST_F(WeightsTest, WrongShapesAreNamed) {
  const std::vector<std::byte> five = BytesOf(std::vector<float>(5));
  for (const Part& part : std::vector<Part>(file_.parts)) {
    const ModelFile good = file_;
    file_.At(part.name).shape = {5};
    file_.At(part.name).data = five;
    EXPECT_TRUE(Refused({"'" + part.name + "' has shape [5]", "expected ["})) << part.name;
    // The right number of elements in another shape.
    file_ = good;
    file_.At(part.name).shape.push_back(1);
    EXPECT_TRUE(Refused({"'" + part.name + "' has shape", "expected ["})) << part.name;
    file_ = good;
    file_.Remove(part.name);
    EXPECT_TRUE(Refused({"'" + part.name + "'", "missing"})) << part.name;
    file_ = good;
  }
}

// ---- names ----

TEST_F(WeightsTest, PrefixesInAnyOrder) {
  for (const std::string prefix : {"transformer.", "_orig_mod.", "module.", "_orig_mod.module.", "module._orig_mod.",
                                   "_orig_mod.transformer.", "module._orig_mod.transformer.", "transformer.module."}) {
    const ModelFile good = file_;
    Rename(prefix);
    EXPECT_TRUE(Same()) << prefix;
    file_ = good;
    // As both projects have it: the head stands outside of the transformer.
    Rename(prefix, "lm_head.weight");
    EXPECT_TRUE(Same()) << prefix;
    file_ = good;
  }
}

TEST_F(WeightsTest, MasksAreNotBiases) {
  for (const char* layer : {"h.0.", "h.1."}) {
    file_.parts.push_back({std::string(layer) + "attn.bias", "U8", {1, 1, 5, 5}, std::vector<std::byte>(25)});
    file_.parts.push_back({std::string(layer) + "attn.masked_bias", "F32", {}, BytesOf(std::vector<float>{-1e4f})});
  }
  EXPECT_TRUE(Same());
  EXPECT_EQ(file_.Parse().storage().num_parameters, model_.storage().num_parameters);
  EXPECT_EQ(file_.Parse().storage().type, "F32");
  Rename("transformer.");
  EXPECT_TRUE(Same());
}

TEST_F(WeightsTest, LeftoversAreNamed) {
  const ModelFile good = file_;
  for (const std::string name :
       {"h.0.extra.weight", "wte.bias", "lm_head.bias", "wte", "h.00.ln_1.weight", "x.wte.weight", ""}) {
    file_.parts.push_back({name, "F32", {1}, BytesOf(std::vector<float>{1})});
    EXPECT_TRUE(Refused({"tensor '" + name + "' belongs to no part", "2 layers"})) << name;
    file_ = good;
  }
  // An unused tensor of a type that no weight may have is named all the same.
  file_.parts.push_back({"step", "I64", {1}, BytesOf(std::vector<int64_t>{1})});
  EXPECT_TRUE(Refused({"tensor 'step' belongs to no part"}));
}

TEST_F(WeightsTest, ALayerTooManyOrTooFew) {
  file_.SetConfig("n_layer", 1);
  const ::testing::AssertionResult refused = Refused({"tensor 'h.1.", "belongs to no part"});
  EXPECT_TRUE(refused);
  EXPECT_TRUE(std::string_view(refused.message()).ends_with(" of a model with 1 layer")) << refused.message();
  file_.SetConfig("n_layer", 3);
  EXPECT_TRUE(Refused({"tensor 'h.2.attn.c_attn.weight' is missing"}));
}

TEST_F(WeightsTest, DoublesAreNamed) {
  for (const std::string prefix : {"transformer.", "_orig_mod.", "module.transformer."}) {
    const ModelFile good = file_;
    Part copy = file_.At("h.1.mlp.c_fc.weight");
    copy.name = prefix + copy.name;
    file_.parts.push_back(copy);
    EXPECT_TRUE(Refused({"'h.1.mlp.c_fc.weight'", "'" + copy.name + "'", "both"}));
    file_ = good;
  }
}

// ---- biases ----

class BiasTest : public WeightsTest {
 protected:
  template <typename Condition>
  void RemoveBiases(const Condition& condition) {
    std::erase_if(file_.parts, [&](const Part& part) { return part.name.ends_with(".bias") && condition(part.name); });
  }
};

TEST_F(BiasTest, NoneMeansZeros) {
  for (Part& part : file_.parts) {
    if (part.name.ends_with(".bias")) part.data.assign(part.data.size(), std::byte{0});
  }
  const std::vector<double> zeros = LogitsOf(file_.Parse());
  RemoveBiases([](const std::string&) { return true; });
  EXPECT_TRUE(Refused({"bias", "'ln_f.bias' is missing"})) << "the configuration says true";
  file_.SetConfig("bias", false);
  EXPECT_TRUE(SameBits(LogitsOf(file_.Parse()), zeros));
  file_.EraseConfig("bias");
  const Model model = file_.Parse();
  EXPECT_TRUE(SameBits(LogitsOf(model), zeros));
  EXPECT_FALSE(model.storage().biases);
  ModelConfig config = model.config();
  config.biases = false;
  EXPECT_EQ(model.storage().num_parameters, CountParameters(config));
  // And written without them.
  EXPECT_TRUE(SameBits(LogitsOf(Model::Parse(model.Serialize(), "the file")), zeros));
}

TEST_F(BiasTest, PartlyAbsentIsAnErrorByName) {
  const ModelFile good = file_;
  for (const nlohmann::json& flag : {nlohmann::json(true), nlohmann::json(nullptr)}) {
    file_ = good;
    file_.SetConfig("bias", flag);
    const ModelFile base = file_;
    RemoveBiases([](const std::string& name) { return name.find("ln_") != std::string::npos; });
    EXPECT_TRUE(Refused({"'ln_f.bias' is missing", "'h.0.attn.c_attn.bias'"}));
    file_ = base;
    RemoveBiases([](const std::string& name) { return name.starts_with("h.1."); });
    EXPECT_TRUE(Refused({"'h.1.ln_1.bias' is missing", "'ln_f.bias'"}));
    for (const Part& part : good.parts) {
      if (!part.name.ends_with(".bias")) continue;
      file_ = base;
      file_.Remove(part.name);
      EXPECT_TRUE(Refused({"'" + part.name + "' is missing"})) << part.name;
    }
  }
}

TEST_F(BiasTest, PresentAgainstTheConfiguration) {
  file_.SetConfig("bias", false);
  EXPECT_TRUE(Refused({"the configuration says bias false", "'ln_f.bias' is there"}));
}

TEST_F(BiasTest, WrongLength) {
  Part& bias = file_.At("h.1.mlp.c_fc.bias");
  bias.shape = {10};
  bias.data.resize(40);
  EXPECT_TRUE(Refused({"'h.1.mlp.c_fc.bias' has shape [10]; expected [11]"}));
}

// ---- types ----

TEST_F(WeightsTest, SixteenAndSixtyFourBitsAreTheSameModel) {
  for (const Part& part : file_.parts) file_.Coarsen(part.name);
  const std::vector<double> logits = LogitsOf(file_.Parse());
  const ModelFile coarse = file_;
  for (const std::string type : {"F16", "BF16", "F64"}) {
    file_ = coarse;
    for (const Part& part : coarse.parts) file_.StoreAs(part.name, type);
    EXPECT_TRUE(SameBits(LogitsOf(file_.Parse()), logits)) << type;
    EXPECT_EQ(file_.Parse().storage().type, type);
  }
  file_ = coarse;
  for (size_t i = 0; i < coarse.parts.size(); ++i) {
    const char* const types[] = {"F32", "F16", "BF16", "F64"};
    if (i % 4 > 0) file_.StoreAs(coarse.parts[i].name, types[i % 4]);
  }
  EXPECT_TRUE(SameBits(LogitsOf(file_.Parse()), logits));
  EXPECT_EQ(file_.Parse().storage().type, "mixed (BF16, F16, F32, F64)");
}

TEST_F(WeightsTest, OtherTypesAreRefusedByName) {
  for (const std::string type : {"I32", "U32"}) {
    file_.At("h.0.ln_2.weight").type = type;
    EXPECT_TRUE(Refused({"'h.0.ln_2.weight' is " + type}));
  }
}

TEST_F(WeightsTest, NumbersThatAreNotFiniteAreRefusedByName) {
  for (const Part& part : std::vector<Part>(file_.parts)) {
    for (const float bad : {INFINITY, -INFINITY, NAN}) {
      std::vector<float> values = ValuesOf<float>(part.data);
      values.back() = bad;
      file_.At(part.name).data = BytesOf(values);
      EXPECT_TRUE(Refused({"'" + part.name + "' holds", "at element " + std::to_string(values.size() - 1)}))
          << part.name;
    }
    file_.At(part.name).data = part.data;
  }
}

// Tensor data may start anywhere modulo 64, in the file and in memory: the header is padded with spaces. Types in turn have all tensors but
// the first at odd places too.
TEST_F(WeightsTest, AnyAlignmentOfTheFile) {
  for (const Part& part : file_.parts) file_.Coarsen(part.name);
  const std::vector<double> logits = LogitsOf(file_.Parse());
  const ModelFile coarse = file_;
  const std::vector<std::vector<std::string>> kinds = {{"F32"}, {"F16"}, {"BF16"}, {"F64"}, {"F16", "F64", "BF16"}};
  for (const std::vector<std::string>& types : kinds) {
    file_ = coarse;
    for (size_t i = 0; i < coarse.parts.size(); ++i) {
      if (types[i % types.size()] != "F32") file_.StoreAs(coarse.parts[i].name, types[i % types.size()]);
    }
    const std::vector<std::byte> good = file_.Bytes();
    uint64_t length = 0;
    std::memcpy(&length, good.data(), 8);
    for (size_t start = 0; start < 64; ++start) {
      const uint64_t shift = (start + 128 - (8 + length) % 64) % 64, longer = length + shift;
      std::vector<std::byte> buffer(good.size() + 128, std::byte{' '});
      std::byte* file = buffer.data() + (64 - reinterpret_cast<uintptr_t>(buffer.data()) % 64) % 64;
      std::memcpy(file, &longer, 8);
      std::copy_n(good.data() + 8, length, file + 8);
      std::copy(good.begin() + static_cast<std::ptrdiff_t>(8 + length), good.end(), file + 8 + longer);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(file + 8 + longer) % 64, start);
      EXPECT_TRUE(SameBits(LogitsOf(Model::Parse({file, good.size() + shift}, "the file")), logits))
          << types[0] << " and others, starting at " << start;
    }
  }
}

}  // namespace
}  // namespace octavo::test
