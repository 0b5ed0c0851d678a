// The scalar forward pass: pieces equal the whole, nothing looks ahead, and every part of the architecture counts.
#include "engine/reference_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/testing/compare.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

template <typename Value>
std::vector<Value> ReadInPieces(const Model& model, const std::vector<TokenId>& tokens, size_t piece) {
  ReferencePass<Value> pass(model);
  std::vector<Value> all;
  for (size_t begin = 0; begin < tokens.size(); begin += piece) {
    const auto logits = pass.ReadAll(std::span(tokens).subspan(begin, std::min(piece, tokens.size() - begin)));
    all.insert(all.end(), logits.begin(), logits.end());
    EXPECT_EQ(pass.length(), std::min(begin + piece, tokens.size()));
  }
  return all;
}

template <typename Value>
class ReferencePassTest : public ::testing::Test {
 protected:
  const Model m64_ = RandomModel(M64Shape());
  const std::vector<TokenId> tokens_ = Random(3).Tokens(40, 65);
};
using Values = ::testing::Types<double, float>;
TYPED_TEST_SUITE(ReferencePassTest, Values);

TYPED_TEST(ReferencePassTest, PiecesEqualTheWhole) {
  const std::vector<TypeParam> whole = ReadInPieces<TypeParam>(this->m64_, this->tokens_, 40);
  for (const size_t piece : {1, 7, 16, 39}) {
    EXPECT_TRUE(SameBits(ReadInPieces<TypeParam>(this->m64_, this->tokens_, piece), whole)) << "pieces of " << piece;
  }
}

TYPED_TEST(ReferencePassTest, ALaterCharacterMovesNoEarlierRow) {
  for (const size_t piece : {1, 7, 16, 40}) {
    const std::vector<TypeParam> before = ReadInPieces<TypeParam>(this->m64_, this->tokens_, piece);
    for (const size_t changed : {39, 20, 1}) {
      std::vector<TokenId> other = this->tokens_;
      other[changed] = (other[changed] + 1) % 65;
      const std::vector<TypeParam> after = ReadInPieces<TypeParam>(this->m64_, other, piece);
      EXPECT_TRUE(SameBits(std::span(after).first(changed * 65), std::span(before).first(changed * 65)));
      for (size_t t = changed; t < 40; ++t) {
        EXPECT_FALSE(SameBits(std::span(after).subspan(t * 65, 65), std::span(before).subspan(t * 65, 65))) << t;
      }
    }
  }
}

TYPED_TEST(ReferencePassTest, ReadLastIsTheLastRow) {
  const std::vector<TypeParam> whole = ReadInPieces<TypeParam>(this->m64_, this->tokens_, 40);
  ReferencePass<TypeParam> pass(this->m64_);
  EXPECT_TRUE(SameBits(pass.ReadLast(this->tokens_), std::span(whole).last(65)));
}

TYPED_TEST(ReferencePassTest, ResetForgets) {
  ReferencePass<TypeParam> pass(this->m64_);
  pass.ReadAll(Random(4).Tokens(64, 65));
  pass.Reset();
  EXPECT_EQ(pass.length(), 0u);
  EXPECT_TRUE(SameBits(pass.ReadAll(this->tokens_), ReadInPieces<TypeParam>(this->m64_, this->tokens_, 40)));
}

TYPED_TEST(ReferencePassTest, WeightsDoNotChangeLogits) {
  const Model model = RandomModel(ModdShape());
  const std::vector<TokenId> tokens = Random(5).Tokens(33, 61);
  ReferencePass<TypeParam> pass(model);
  std::vector<TypeParam> weights;
  EXPECT_TRUE(SameBits(pass.ReadWithWeights(tokens, weights), ReadInPieces<TypeParam>(model, tokens, 33)));
  EXPECT_EQ(weights.size(), 2u * 3 * 33 * 33);
  EXPECT_TRUE(RowsSumToOne(weights, 33));
}

// A pass in float strays from the one in double by rounding alone.
TYPED_TEST(ReferencePassTest, FloatStaysNearDouble) {
  for (const ModelShape& shape : {M8Shape(), ModdShape(), M64Shape()}) {
    const Model model = RandomModel(shape);
    const std::vector<TokenId> tokens = Random(6).Tokens(shape.context_length, shape.vocabulary.size());
    const std::vector<double> exact = ReadInPieces<double>(model, tokens, tokens.size());
    double largest = 0;
    for (const double x : exact) largest = std::max(largest, std::abs(x));
    EXPECT_TRUE(Within(ReadInPieces<float>(model, tokens, tokens.size()), exact, largest * 0x1p-17));
  }
}

// Shapes at the edges: one seat, one feature, as many heads as features, one character.
TYPED_TEST(ReferencePassTest, SmallestShapes) {
  for (const ModelShape& shape :
       {ModelShape{Characters("a"), 1, 1, 1, 1}, ModelShape{Characters("ab"), 1, 1, 3, 3},
        ModelShape{Characters("abc"), 2, 3, 1, 1}, ModelShape{Characters("ab"), 3, 1, 7, 7, 1}}) {
    const Model model = RandomModel(shape);
    const std::vector<TokenId> tokens(shape.context_length, 0);
    const std::vector<TypeParam> logits = ReadInPieces<TypeParam>(model, tokens, tokens.size());
    EXPECT_EQ(logits.size(), tokens.size() * shape.vocabulary.size());
    for (const TypeParam x : logits) EXPECT_TRUE(std::isfinite(x));
  }
}

// Scaling any one tensor moves the logits: none is left out or read for another. (All keys share their bias's shift, which softmax
// cancels; so do not the rest of c_attn's biases.)
TYPED_TEST(ReferencePassTest, EveryParameterCounts) {
  const ModelShape shape = M8Shape();
  const std::vector<TokenId> tokens = {4, 2, 3, 0, 1, 2};
  const ModelConfig config = ConfigOf(shape);
  const std::vector<TypeParam> before = ReadInPieces<TypeParam>(RandomModel(shape), tokens, 6);
  const auto tensors = [](Weights& w) {
    std::vector<std::vector<float>*> all = {&w.wte, &w.wpe, &w.ln_f.gain, &w.ln_f.bias, &w.lm_head};
    for (LayerWeights& layer : w.layers) {
      for (Norm* norm : {&layer.ln_1, &layer.ln_2}) all.insert(all.end(), {&norm->gain, &norm->bias});
      for (Linear* linear : {&layer.c_attn, &layer.attn_proj, &layer.c_fc, &layer.mlp_proj}) {
        all.insert(all.end(), {&linear->weight, &linear->bias});
      }
    }
    return all;
  };
  Weights first = RandomWeights(config, 1);
  for (size_t i = 0; i < tensors(first).size(); ++i) {
    Weights weights = RandomWeights(config, 1);
    for (float& x : *tensors(weights)[i]) x *= 1.5f;
    const Model model = BuildModel(config, shape.vocabulary, std::move(weights));
    EXPECT_FALSE(Within(ReadInPieces<TypeParam>(model, tokens, 6), before, 1e-4)) << "tensor " << i;
  }
}

}  // namespace
}  // namespace octavo::test
