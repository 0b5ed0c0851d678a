// The promise of the same text, in constants: hashes of what the built-in model writes, for this version of the numerics, on every target with
// fused multiply-add; and long greedy texts, which part between kinds of targets only where two logits are as good as equal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/check/case.h"
#include "engine/generate.h"
#include "engine/hash.h"
#include "engine/reference_pass.h"
#include "engine/version.h"
#include "kernels/targets.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

// ---- fixed texts ----

struct FixedText {
  const char* prompt;
  Overflow overflow;
  double temperature;
  uint64_t top_k;
  double top_p;
  uint64_t seed, sequence;
};

// 100 characters each, of which the context of 64 holds only some.
constexpr std::array<FixedText, 16> kTexts = {{
    {"ROMEO:", Overflow::kSlide, 1, 0, 1, 1, 0},
    {"ROMEO:", Overflow::kRestart, 1, 0, 1, 1, 0},
    {"ROMEO:", Overflow::kStop, 1, 0, 1, 1, 0},
    {"", Overflow::kSlide, 0, 0, 1, 0, 0},
    {"", Overflow::kRestart, 0, 0, 1, 0, 0},
    {"The king is dead, and all his men", Overflow::kSlide, 0.8, 0, 1, 7, 1},
    {"The king is dead, and all his men", Overflow::kRestart, 0.8, 0, 1, 7, 2},
    {"The king is dead, and all his men", Overflow::kStop, 0.8, 0, 1, 7, 3},
    {"First Citizen:\nBefore we proceed", Overflow::kSlide, 0.5, 0, 1, 42, 0},
    {"First Citizen:\nBefore we proceed", Overflow::kRestart, 2, 0, 1, 42, 0},
    {"a", Overflow::kSlide, 1, 1, 1, 3, 9},
    {"a", Overflow::kSlide, 1, 5, 1, 3, 9},
    {"a", Overflow::kRestart, 1.3, 20, 1, 3, 9},
    {"b", Overflow::kSlide, 1, 0, 0.9, uint64_t{1} << 63, uint64_t{1} << 40},
    {"b", Overflow::kRestart, 1, 0, 0.5, ~uint64_t{0}, 4},
    {"Come, come, and let us go. Come, come, and let us go. Come, come", Overflow::kSlide, 1.1, 30, 0.95, 12, 5},
}};

// Refresh both together, and only for a change of the numerics that is meant: a failing test prints what belongs here.
constexpr int kHashedVersion = 2;
constexpr std::array<uint64_t, kTexts.size()> kHashes = {
    0xEB77EBAC690EE59A, 0x5EFE8A11ED0DD9D6, 0x4A3561DB05DC44CF, 0x6F0621FBB14BD257,
    0x5576FFE97BA7DCE3, 0x0F45B4EF54DF62B3, 0xDB0EC86AF9AEECD6, 0xC7AA1080548F711F,
    0x1747228487B1D345, 0x5AD0B05AB31F586D, 0xD047D54176BD1FAC, 0x9FCF94460257F826,
    0x1F2DFEA5D9B2AFE5, 0x9722D662BF9E0CB3, 0xBAA8A54B6F00FA8F, 0x3B422616AFF6896D,
};

GenerateRequest Request(const Model& model, std::string_view prompt, uint64_t max_chars) {
  GenerateRequest request;
  request.prompt = model.vocabulary().Encode(prompt);
  request.options.max_chars = max_chars;
  return request;
}

// Of a text and the bits of its log-probability.
uint64_t HashOf(const Model& model, const FixedText& text) {
  GenerateRequest request = Request(model, text.prompt, 100);
  request.options.overflow = text.overflow;
  request.options.sampling = {text.temperature, text.top_k, text.top_p};
  request.seed = text.seed;
  request.sequence = text.sequence;
  const Completion completion = Generate(model, request);
  EXPECT_EQ(completion.num_chars, text.overflow == Overflow::kStop ? 65 - request.prompt.size() : 100u)
      << completion.error;
  Fnv1a hash;
  hash.Add(completion.text);
  std::array<char, sizeof(double)> bits;
  std::memcpy(bits.data(), &completion.log_probability, sizeof(double));
  hash.Add({bits.data(), bits.size()});
  return hash.value();
}

using Hashes = std::array<uint64_t, kTexts.size()>;

Hashes HashAll(const Model& model) {
  Hashes hashes;
  for (size_t i = 0; i < kTexts.size(); ++i) hashes[i] = HashOf(model, kTexts[i]);
  return hashes;
}

// The two constants as they should read.
std::string Constants(int version, const Hashes& hashes) {
  std::string text = fmt::format(
      "constexpr int kHashedVersion = {};\nconstexpr std::array<uint64_t, kTexts.size()> kHashes = {{", version);
  for (size_t i = 0; i < hashes.size(); ++i) {
    text += fmt::format("{}0x{:016X},", i % 4 ? " " : "\n    ", hashes[i]);
  }
  return text + "\n};\n";
}

std::vector<std::string> Targets(bool fused) {
  std::vector<std::string> targets = RunnableTargets();
  std::erase_if(targets, [fused](const std::string& target) { return HasFusedMultiplyAdd(target) != fused; });
  return targets;
}

class Numerics : public ::testing::Test {
 protected:
  ~Numerics() override { UseBestTarget(); }

  // What all targets of a kind give; nullopt where none of them runs here.
  std::optional<Hashes> CommonHashes(bool fused) const {
    std::optional<Hashes> first;
    for (const std::string& target : Targets(fused)) {
      EXPECT_TRUE(UseTarget(target));
      const Hashes hashes = HashAll(model_);
      if (!first) first = hashes;
      EXPECT_EQ(hashes, *first) << target << " writes other texts than " << Targets(fused).front();
    }
    return first;
  }

  const Model model_ = Model::BuiltIn("tiny");
};

TEST_F(Numerics, WriteWhatTheirVersionWrote) {
  const std::optional<Hashes> hashes = CommonHashes(true);
  if (!hashes) GTEST_SKIP() << "no target of this CPU has fused multiply-add";
  const bool same_texts = *hashes == kHashes;
  if (same_texts && kNumericsVersion == kHashedVersion) return;
  const int version = std::max(kNumericsVersion, kHashedVersion + (same_texts ? 0 : 1));
  ADD_FAILURE() << (same_texts ? "kNumericsVersion differs, but the texts are the same: set it back"
                               : "the numerics changed. If that is meant, raise kNumericsVersion")
                << fmt::format(" in engine/version.h (now {}) and put these hashes here:\n\n{}", kNumericsVersion,
                               Constants(version, *hashes));
}

TEST_F(Numerics, TargetsWithoutFusedMultiplyAddAgree) { CommonHashes(false); }

// ---- greedy texts ----

std::vector<TokenId> GreedyText(const Model& model, std::string_view prompt) {
  GenerateRequest request = Request(model, prompt, 500);
  request.options.sampling.temperature = 0;
  const Completion completion = Generate(model, request);
  EXPECT_EQ(completion.num_chars, 500u) << completion.error;
  return model.vocabulary().Encode(completion.text);
}

// Whether two greedy texts are the same, or part where the two characters are both as likely as any, within the bound of a whole model's
// logits: 8 times the error of a plain float pass (engine/check/models.h). Behind that place they may differ in all.
::testing::AssertionResult PartOnlyAtTies(const Model& model, std::string_view prompt, const std::vector<TokenId>& a,
                                          const std::vector<TokenId>& b) {
  const auto [at_a, at_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (at_a == a.end() && at_b == b.end()) return ::testing::AssertionSuccess() << "the same";
  if (at_a == a.end() || at_b == b.end()) return ::testing::AssertionFailure() << "of different lengths";
  std::vector<TokenId> window = model.vocabulary().Encode(prompt);
  if (window.empty()) window = {model.start_token()};
  window.insert(window.end(), a.begin(), at_a);
  const size_t seated = std::min(window.size(), model.config().context_length);
  window.erase(window.begin(), window.end() - static_cast<std::ptrdiff_t>(seated));
  ReferencePass<double> reference(model);
  ReferencePass<float> plain(model);
  const auto expected = reference.ReadLast(window);
  const auto rough = plain.ReadLast(window);
  double error = 0, largest = -INFINITY;
  for (size_t v = 0; v < expected.size(); ++v) {
    error = std::max(
        {error, std::abs(expected[v] - static_cast<double>(rough[v])), check::kRoundoff * std::abs(expected[v])});
    largest = std::max(largest, expected[v]);
  }
  const double behind = largest - std::min(expected[static_cast<size_t>(*at_a)], expected[static_cast<size_t>(*at_b)]);
  const auto result = behind <= 8 * error ? ::testing::AssertionSuccess() : ::testing::AssertionFailure();
  return ::testing::AssertionResult(result) << fmt::format(
             "they part at character {}, where one of the two is {:.3g} behind the best logit; the bound is {:.3g}",
             at_a - a.begin(), behind, 8 * error);
}

// Hashes of what targets with fused multiply-add write, so that those of different CPUs are compared; they change with kHashes.
constexpr std::pair<const char*, uint64_t> kGreedyTexts[] = {{"", 0x6D1159A97183A37C},
                                                             {"ROMEO:", 0xE71D9715E1093228},
                                                             {"The king is dead", 0x52DF9925F225FC8A},
                                                             {"Z", 0xF14A5F4E9F9784F8}};

TEST_F(Numerics, GreedyTextsPartOnlyAtTies) {
  for (const auto& [prompt, expected] : kGreedyTexts) {
    SCOPED_TRACE(prompt);
    std::vector<std::vector<TokenId>> of_kind;
    for (const bool fused : {true, false}) {
      const std::vector<std::string> targets = Targets(fused);
      for (const std::string& target : targets) {
        ASSERT_TRUE(UseTarget(target));
        const std::vector<TokenId> text = GreedyText(model_, prompt);
        if (target == targets.front()) of_kind.push_back(text);
        EXPECT_EQ(text, of_kind.back()) << target << " and " << targets.front();
        if (fused) {
          Fnv1a hash;
          for (const TokenId token : text) hash.Add(model_.vocabulary().text(token));
          EXPECT_EQ(fmt::format("0x{:016X}", hash.value()), fmt::format("0x{:016X}", expected)) << target;
        }
      }
    }
    EXPECT_TRUE(PartOnlyAtTies(model_, prompt, of_kind.front(), of_kind.back()));
  }
}

TEST_F(Numerics, PartingElsewhereIsSeen) {
  const std::vector<TokenId> text = GreedyText(model_, "ROMEO:");
  EXPECT_TRUE(PartOnlyAtTies(model_, "ROMEO:", text, text));
  for (const size_t at : {0, 10, 100, 499}) {
    std::vector<TokenId> other = text;
    other[at] = (other[at] + 1) % 65;
    EXPECT_FALSE(PartOnlyAtTies(model_, "ROMEO:", text, other)) << at;
    EXPECT_FALSE(PartOnlyAtTies(model_, "ROMEO:", other, text)) << at;
  }
  EXPECT_FALSE(PartOnlyAtTies(model_, "ROMEO:", text, {text.begin(), text.end() - 1}));
  // Two characters that the model cannot tell apart: their columns of the head are the same.
  Weights weights = model_.weights();
  const auto best = static_cast<size_t>(text[0]), twin = (best + 1) % 65;
  for (size_t i = 0; i < model_.config().width; ++i) weights.lm_head[i * 65 + twin] = weights.lm_head[i * 65 + best];
  const Model twins = BuildModel(model_.config(), model_.vocabulary().entries(), std::move(weights));
  std::vector<TokenId> other = text;
  other[0] = static_cast<TokenId>(twin);
  EXPECT_TRUE(PartOnlyAtTies(twins, "ROMEO:", text, other));
}

}  // namespace
}  // namespace octavo::test
