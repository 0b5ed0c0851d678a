// The vocabulary: characters by id, one Unicode code point each, and texts to ids and back.
#ifndef OCTAVO_ENGINE_VOCABULARY_H_
#define OCTAVO_ENGINE_VOCABULARY_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/config.h"

namespace octavo {

// What becomes of a character that the vocabulary lacks.
struct UnknownPolicy {
  enum class Kind { kError, kSkip, kReplace } kind = Kind::kError;
  TokenId replacement = 0;  // for kReplace
};

class Vocabulary {
 public:
  Vocabulary() = default;

  // `entries` by id; the special tokens come from `config`. Throws Error when the number of entries is not the configuration's, an
  // entry stands twice, or one that is not special is not exactly one code point. `where` names the source in the message.
  Vocabulary(std::vector<std::string> entries, const ModelConfig& config, std::string_view where);

  size_t size() const { return entries_.size(); }
  const std::vector<std::string>& entries() const { return entries_; }

  // What printing `id` adds to a text, in UTF-8; empty for special tokens.
  std::string_view text(TokenId id) const {
    return is_special(id) ? std::string_view() : std::string_view(entries_[static_cast<size_t>(id)]);
  }
  bool is_special(TokenId id) const { return kinds_[static_cast<size_t>(id)] != Kind::kCharacter; }
  bool is_end(TokenId id) const { return kinds_[static_cast<size_t>(id)] == Kind::kEnd; }

  std::optional<TokenId> Find(char32_t character) const;

  // Ids of the characters of `text`. Throws Error when it is not UTF-8, or, with kError, that names the first unknown
  // character's code point and place (counted from 1).
  std::vector<TokenId> Encode(std::string_view text, const UnknownPolicy& unknown = {}) const;

  // Names the first id outside the vocabulary and its place (counted from 1); empty when there is none.
  std::string ComplaintAbout(std::span<const TokenId> ids) const;

 private:
  enum class Kind : char { kCharacter, kSpecial, kEnd };

  std::vector<std::string> entries_;
  std::vector<Kind> kinds_;
  std::unordered_map<char32_t, TokenId> ids_;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_VOCABULARY_H_
