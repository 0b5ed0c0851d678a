// Characters to ids and back: any code points, special tokens, and errors by name and place.
#include "engine/vocabulary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/errors.h"

namespace octavo::test {
namespace {

ModelConfig ConfigOf(size_t size) {
  ModelConfig config;
  config.vocabulary_size = size;
  return config;
}

Vocabulary Make(const std::vector<std::string>& entries) { return {entries, ConfigOf(entries.size()), "the file"}; }

TEST(VocabularyTest, FindsEveryCharacter) {
  const std::vector<std::string> entries = {
      "\n", "é", "a", "€", "😀", "\"", "\\", "\t", "\x01", "\u2028", std::string(1, '\0')};
  const Vocabulary vocabulary = Make(entries);
  EXPECT_EQ(vocabulary.size(), 11u);
  EXPECT_EQ(vocabulary.entries(), entries);
  const char32_t characters[] = {'\n', U'é', 'a', U'€', U'😀', '"', '\\', '\t', 1, 0x2028, 0};
  std::string text;
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < 11; ++id) {
    EXPECT_EQ(vocabulary.Find(characters[id]), id);
    EXPECT_EQ(vocabulary.text(id), entries[static_cast<size_t>(id)]);
    EXPECT_FALSE(vocabulary.is_special(id) || vocabulary.is_end(id));
    text += vocabulary.text(id);
    ids.push_back(id);
  }
  EXPECT_EQ(vocabulary.Encode(text), ids);
  EXPECT_EQ(vocabulary.Find('b'), std::nullopt);
  EXPECT_TRUE(vocabulary.Encode("").empty());
}

TEST(VocabularyTest, UnknownCharactersFailByNameAndPlace) {
  const Vocabulary vocabulary = Make({"p", "r", "i", "c", "e", ":", " ", "5", "n", "a", "v"});
  EXPECT_TRUE(Fails([&] { vocabulary.Encode("price: 5€"); }, {"character 9", "U+20AC '€'"}));
  EXPECT_TRUE(Fails([&] { vocabulary.Encode("naïve"); }, {"character 3", "U+00EF 'ï'"}));
  EXPECT_TRUE(Fails([&] { vocabulary.Encode("\tprice"); }, {"character 1", "U+0009 '\\t'"}));
  EXPECT_TRUE(Fails([&] { vocabulary.Encode("p\xFF"); }, {"byte 1", "0xFF", "not UTF-8"}));
}

TEST(VocabularyTest, UnknownCharactersAreSkippedOrReplacedOnRequest) {
  const Vocabulary vocabulary = Make({"a", "b"});
  EXPECT_EQ(vocabulary.Encode("a€bïa", {UnknownPolicy::Kind::kSkip, 0}), (std::vector<TokenId>{0, 1, 0}));
  EXPECT_EQ(vocabulary.Encode("a€bïa", {UnknownPolicy::Kind::kReplace, 1}), (std::vector<TokenId>{0, 1, 1, 1, 0}));
  EXPECT_TRUE(Fails([&] { vocabulary.Encode("\xFF", {UnknownPolicy::Kind::kSkip, 0}); }, {"not UTF-8"}));
}

TEST(VocabularyTest, RefusesTheWrongNumberOfEntries) {
  const std::vector<std::string> entries = {"a", "b", "c"};
  for (const size_t size : {0, 2, 4}) {
    EXPECT_TRUE(Fails([&] { Vocabulary(entries, ConfigOf(size), "the file"); },
                      {"the file", "3 entries", "vocab_size is " + std::to_string(size)}));
  }
}

TEST(VocabularyTest, RefusesBadEntriesByName) {
  EXPECT_TRUE(Fails([] { Make({"a", "b", "a"}); }, {"the file", "'a' twice", "id 2"}));
  EXPECT_TRUE(Fails([] { Make({"a", "th"}); }, {"the file", "'th' (id 1)", "2 code points"}));
  EXPECT_TRUE(Fails([] { Make({"", "a"}); }, {"the file", "'' (id 0)", "0 code points"}));
  // Two code points that show as one character.
  EXPECT_TRUE(Fails([] { Make({"e\u0301"}); }, {"2 code points"}));
  EXPECT_TRUE(Fails([] { Make({"a", "<eos>"}); }, {"'<eos>'", "bos, eos or pad"}));
}

TEST(VocabularyTest, SpecialTokensAreNeverPrinted) {
  ModelConfig config = ConfigOf(6);
  config.start_tokens = {3};
  config.padding_tokens = {0};
  config.end_tokens = {4, 5};
  const Vocabulary vocabulary({"<pad>", "a", "b", "<bos>", "<eos>", "\n"}, config, "the file");
  for (const TokenId id : {0, 3, 4, 5}) {
    EXPECT_TRUE(vocabulary.is_special(id));
    EXPECT_EQ(vocabulary.text(id), "");
    EXPECT_EQ(vocabulary.is_end(id), id >= 4);
  }
  for (const TokenId id : {1, 2}) EXPECT_FALSE(vocabulary.is_special(id) || vocabulary.is_end(id));
  // Texts cannot name the long ones; a special token of one character can be read.
  EXPECT_TRUE(Fails([&] { vocabulary.Encode("<eos>"); }, {"character 1", "'<'"}));
  EXPECT_EQ(vocabulary.Encode("a\n"), (std::vector<TokenId>{1, 5}));
}

TEST(VocabularyTest, ATokenThatBothStartsAndEndsEnds) {
  ModelConfig config = ConfigOf(2);
  config.start_tokens = config.end_tokens = config.padding_tokens = {1};
  EXPECT_TRUE(Vocabulary({"a", "<|endoftext|>"}, config, "the file").is_end(1));
}

}  // namespace
}  // namespace octavo::test
