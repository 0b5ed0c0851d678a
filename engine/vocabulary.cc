// Characters to ids and back; see vocabulary.h.
#include "engine/vocabulary.h"

#include <unordered_set>
#include <utility>

#include "engine/fail.h"
#include "engine/utf8.h"

namespace octavo {

Vocabulary::Vocabulary(std::vector<std::string> entries, const ModelConfig& config, std::string_view where)
    : entries_(std::move(entries)), kinds_(entries_.size(), Kind::kCharacter) {
  if (entries_.size() != config.vocabulary_size) {
    Fail("{}: the vocabulary has {} entries; vocab_size is {}", where, entries_.size(), config.vocabulary_size);
  }
  for (const auto* ids : {&config.start_tokens, &config.padding_tokens}) {
    for (const TokenId id : *ids) kinds_[static_cast<size_t>(id)] = Kind::kSpecial;
  }
  for (const TokenId id : config.end_tokens) kinds_[static_cast<size_t>(id)] = Kind::kEnd;

  std::unordered_set<std::string_view> seen;
  for (size_t id = 0; id < entries_.size(); ++id) {
    const std::string& entry = entries_[id];
    if (!seen.insert(entry).second) Fail("{}: the vocabulary has {} twice (again as id {})", where, Quote(entry), id);
    const std::u32string decoded = DecodeUtf8(entry);
    if (decoded.size() == 1) {
      ids_.emplace(decoded[0], static_cast<TokenId>(id));
    } else if (!is_special(static_cast<TokenId>(id))) {
      Fail("{}: vocabulary entry {} (id {}) is {} code points; expected one, or a declaration as bos, eos or pad token",
           where, Quote(entry), id, decoded.size());
    }
  }
}

std::optional<TokenId> Vocabulary::Find(char32_t character) const {
  const auto found = ids_.find(character);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<TokenId> Vocabulary::Encode(std::string_view text, const UnknownPolicy& unknown) const {
  const std::u32string characters = DecodeUtf8(text);
  std::vector<TokenId> ids;
  ids.reserve(characters.size());
  for (size_t i = 0; i < characters.size(); ++i) {
    if (const std::optional<TokenId> id = Find(characters[i])) {
      ids.push_back(*id);
    } else if (unknown.kind == UnknownPolicy::Kind::kReplace) {
      ids.push_back(unknown.replacement);
    } else if (unknown.kind == UnknownPolicy::Kind::kError) {
      Fail("character {} is {}, which the model's vocabulary lacks", i + 1, DescribeCodePoint(characters[i]));
    }
  }
  return ids;
}

std::string Vocabulary::ComplaintAbout(std::span<const TokenId> ids) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<size_t>(ids[i]) >= size()) {
      return fmt::format("token {} is {}; expected an id from 0 to {}", i + 1, ids[i], size() - 1);
    }
  }
  return {};
}

}  // namespace octavo
