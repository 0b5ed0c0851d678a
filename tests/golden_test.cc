// Whole models in every form of file against what PyTorch computed from them in float64 (tests/data/make_golden.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/forward.h"
#include "engine/model.h"
#include "engine/reference_pass.h"
#include "engine/safetensors.h"
#include "kernels/targets.h"
#include "tests/testing/compare.h"
#include "tests/testing/golden.h"

namespace octavo::test {
namespace {

// What any pass must keep; the one in double stays far below.
constexpr double kLogitsBound = 1e-4, kAttentionBound = 1e-5;

// The vector kernels' [T, vocabulary], and their attention weights.
std::vector<float> ReadText(const Model& model, const GoldenValues& golden, std::vector<float>& attention) {
  const size_t length = golden.tokens.size(), vocabulary = model.vocabulary().size();
  TextPass pass(model);
  std::vector<float> logits(length * vocabulary);
  attention.assign(model.config().num_layers * model.config().num_heads * length * length, 0);
  pass.Read(golden.tokens, 0, attention.data());
  for (size_t panel = 0; panel < NumPanels(length); ++panel) {
    const float* from = pass.Logits(panel);
    for (size_t t = panel * kPanelRows; t < std::min(length, (panel + 1) * kPanelRows); ++t) {
      for (size_t v = 0; v < vocabulary; ++v) logits[t * vocabulary + v] = from[v * kPanelRows + t % kPanelRows];
    }
  }
  return logits;
}

class GoldenTest : public ::testing::TestWithParam<nlohmann::json> {
 protected:
  const nlohmann::json& entry_ = GetParam();
  const Model model_ = OpenGolden(entry_);
  const GoldenValues golden_ = ReadGolden(entry_);

  template <typename Value>
  void CheckPass(double logits_bound, double attention_bound) const {
    ReferencePass<Value> pass(model_);
    std::vector<Value> attention;
    const auto logits = pass.ReadWithWeights(golden_.tokens, attention);
    EXPECT_TRUE(Within(logits, golden_.logits, logits_bound));
    EXPECT_TRUE(Within(golden_.RowsOf(attention), golden_.attention, attention_bound));
    EXPECT_TRUE(RowsSumToOne(attention, golden_.tokens.size()));
  }
};

TEST_P(GoldenTest, FactsAgreeWithTheManifest) {
  const ModelConfig& config = model_.config();
  EXPECT_EQ(config.width, entry_["width"]);
  EXPECT_EQ(config.num_heads, entry_["heads"]);
  EXPECT_EQ(config.inner_width, entry_.value("inner_width", 4 * config.width));
  EXPECT_EQ(config.num_layers, entry_["layers"]);
  EXPECT_EQ(config.context_length, entry_["context"]);
  EXPECT_EQ(config.vocabulary_size, entry_["vocabulary"]);
  EXPECT_EQ(model_.vocabulary().size(), entry_["vocabulary"]);
  EXPECT_EQ(ActivationName(config.activation), entry_["activation"].get<std::string>());
  const StorageInfo& storage = model_.storage();
  EXPECT_EQ(storage.tied, entry_["tied"]);
  EXPECT_EQ(storage.biases, entry_["biases"]);
  EXPECT_EQ(storage.orientation, entry_["orientation"].get<std::string>());
  EXPECT_EQ(storage.padding_rows, entry_["padding"]);
  EXPECT_EQ(storage.num_parameters, entry_["parameters"]);
  const auto type = entry_["type"].get<std::string>();
  EXPECT_TRUE(type == "mixed" ? storage.type.starts_with("mixed (") : storage.type == type) << storage.type;
  EXPECT_EQ(model_.vocabulary().Encode(entry_["text"].get<std::string>()), golden_.tokens);
}

// What is left is epsilon as a float and, where the file has F64, parameters as floats, or expected attention stored as F32.
TEST_P(GoldenTest, PassInDoubleAgrees) {
  const double bound = entry_["type"] == "F64" ? 1e-5 : 1e-8;
  CheckPass<double>(bound, bound + 0x1p-25);
}

TEST_P(GoldenTest, PassInFloatAgrees) { CheckPass<float>(kLogitsBound, kAttentionBound); }

// The vector kernels, on every target of this CPU.
TEST_P(GoldenTest, TextPassAgreesOnEveryTarget) {
  for (const std::string& target : RunnableTargets()) {
    SCOPED_TRACE(target);
    UseTarget(target);
    std::vector<float> attention;
    const std::vector<float> logits = ReadText(model_, golden_, attention);
    EXPECT_TRUE(Within(logits, golden_.logits, kLogitsBound));
    EXPECT_TRUE(Within(golden_.RowsOf(attention), golden_.attention, kAttentionBound));
    EXPECT_TRUE(RowsSumToOne(attention, golden_.tokens.size()));
  }
  UseBestTarget();
}

// The mask: PyTorch's zeros above the diagonal are zeros here, not small numbers.
TEST_P(GoldenTest, NothingIsReadBehindAPosition) {
  const size_t length = golden_.tokens.size();
  ReferencePass<double> pass(model_);
  std::vector<double> attention;
  pass.ReadWithWeights(golden_.tokens, attention);
  ASSERT_EQ(attention.size(), model_.config().num_layers * model_.config().num_heads * length * length);
  for (size_t i = 0; i < attention.size(); ++i) {
    const size_t t = i / length % length, s = i % length;
    EXPECT_TRUE(s <= t ? attention[i] > 0 : attention[i] == 0) << "row " << t << ", column " << s;
  }
}

TEST_P(GoldenTest, CachedEqualsWhole) {
  ReferencePass<double> whole(model_), cached(model_);
  const auto logits = whole.ReadAll(golden_.tokens);
  const size_t vocabulary = model_.vocabulary().size();
  for (size_t t = 0; t < golden_.tokens.size(); ++t) {
    const auto last = cached.ReadLast(std::span(golden_.tokens).subspan(t, 1));
    EXPECT_TRUE(SameBits(last, logits.subspan(t * vocabulary, vocabulary))) << "position " << t;
  }
}

// A pass with another activation must not be taken for the right one, least of all one GELU for the other.
TEST_P(GoldenTest, AnotherActivationIsSeen) {
  for (const ActivationKind kind : {ActivationKind::kGeluErf, ActivationKind::kGeluTanh, ActivationKind::kRelu}) {
    ModelConfig config = model_.config();
    const bool same = config.activation == kind;
    config.activation = kind;
    const Model other(config, model_.vocabulary(), model_.weights(), model_.storage(), model_.start_token());
    ReferencePass<double> pass(other);
    EXPECT_EQ(static_cast<bool>(Within(pass.ReadAll(golden_.tokens), golden_.logits, kLogitsBound)), same)
        << ActivationName(kind);
  }
}

// One file, both GELUs: each configuration gives PyTorch's numbers of its own, and none of the other's.
TEST(GoldenGelu, OneFileUnderBothConfigurations) {
  ModelFile file(OpenGolden({{"model", "m8.safetensors"}}));
  const std::string names[] = {"gelu_new", "gelu"};
  const GoldenValues golden[] = {ReadGolden({{"expected", "m8.expected.safetensors"}}),
                                 ReadGolden({{"expected", "m8.gelu.expected.safetensors"}})};
  ASSERT_EQ(golden[0].tokens, golden[1].tokens);
  for (const size_t own : {0, 1}) {
    SCOPED_TRACE(names[own]);
    file.SetConfig("activation_function", names[own]);
    const Model model = file.Parse();
    const auto check = [&](const auto& logits, const auto& attention, double logits_bound, double attention_bound) {
      EXPECT_TRUE(Within(logits, golden[own].logits, logits_bound));
      EXPECT_TRUE(Within(attention, golden[own].attention, attention_bound));
      EXPECT_FALSE(Within(logits, golden[1 - own].logits, kLogitsBound));
      EXPECT_FALSE(Within(attention, golden[1 - own].attention, kAttentionBound));
    };
    ReferencePass<double> in_double(model);
    std::vector<double> double_attention;
    const auto double_logits = in_double.ReadWithWeights(golden[own].tokens, double_attention);
    check(double_logits, double_attention, 1e-8, 1e-8);
    ReferencePass<float> in_float(model);
    std::vector<float> attention;
    const auto float_logits = in_float.ReadWithWeights(golden[own].tokens, attention);
    check(float_logits, attention, kLogitsBound, kAttentionBound);
    for (const std::string& target : RunnableTargets()) {
      SCOPED_TRACE(target);
      UseTarget(target);
      const std::vector<float> logits = ReadText(model, golden[own], attention);
      check(logits, attention, kLogitsBound, kAttentionBound);
    }
    UseBestTarget();
  }
}

// What a file says in another form is the same model in octavo's own.
TEST_P(GoldenTest, SerializedIsTheSameModel) {
  const Model again = Model::Parse(model_.Serialize(), "the copy");
  ReferencePass<double> first(model_), second(again);
  EXPECT_TRUE(SameBits(second.ReadAll(golden_.tokens), first.ReadAll(golden_.tokens)));
  EXPECT_EQ(again.storage().num_parameters, model_.storage().num_parameters);
}

INSTANTIATE_TEST_SUITE_P(, GoldenTest, ::testing::ValuesIn(ReadGoldenManifest()),
                         [](const auto& test) { return test.param["name"].template get<std::string>(); });

// An empty list would pass without a test.
TEST(GoldenManifest, HoldsEveryForm) {
  std::vector<std::string> names;
  for (const nlohmann::json& entry : ReadGoldenManifest()) names.push_back(entry["name"].get<std::string>());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"eos", "headonly", "m8", "modd", "pad", "s4", "t1", "tiny_bag",
                                             "tiny_verse", "w128", "w33"}));
}

}  // namespace
}  // namespace octavo::test
