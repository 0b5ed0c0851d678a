// Attention weights and their statistics; see attention.h.
#include "engine/attention.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <string>

#include "engine/fail.h"
#include "engine/forward.h"
#include "engine/parallel.h"
#include "engine/utf8.h"

namespace octavo {
namespace {

// Unicode's White_Space.
bool IsWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// By position: where the space before its word stands, for positions inside a word.
std::vector<std::optional<size_t>> SpacesBefore(std::u32string_view text) {
  std::vector<std::optional<size_t>> spaces(text.size());
  std::optional<size_t> space;  // before the word that position t - 1 belongs to
  for (size_t t = 1; t < text.size(); ++t) {
    if (IsWhiteSpace(text[t])) {
      space.reset();
    } else if (IsWhiteSpace(text[t - 1])) {
      if (text[t - 1] == U' ') space = t - 1;
    } else {
      spaces[t] = space;
    }
  }
  return spaces;
}

// Index of the largest; of equals the last, which is the nearest to the reading position.
size_t NearestLargest(std::span<const float> row) {
  const auto last = std::max_element(row.rbegin(), row.rend());
  return static_cast<size_t>(row.rend() - last) - 1;
}

// Special tokens, which no text has, are no white space.
std::u32string CharactersOf(const Vocabulary& vocabulary, std::span<const TokenId> text) {
  std::u32string characters;
  for (const TokenId id : text) {
    characters += vocabulary.is_special(id) ? U'\uFFFD' : DecodeUtf8(vocabulary.text(id))[0];
  }
  return characters;
}

void CheckText(const Model& model, std::span<const TokenId> text) {
  const size_t context = model.config().context_length;
  if (text.empty() || text.size() > context) {
    Fail("the text has {}; expected 1 to {}, the context length", Counted(text.size(), "character"), context);
  }
  if (const std::string complaint = model.vocabulary().ComplaintAbout(text); !complaint.empty()) Fail("{}", complaint);
}

// The buffer that the pass fills.
std::vector<float> WeightsBuffer(const ModelConfig& config, size_t length) {
  size_t bytes = sizeof(float);
  for (const size_t factor : {config.num_layers, config.num_heads, length, length}) {
    if (__builtin_mul_overflow(bytes, factor, &bytes)) {
      Fail("{} layers and {} heads over {} characters need more bytes for attention weights than can be counted",
           config.num_layers, config.num_heads, length);
    }
  }
  try {
    return std::vector<float>(bytes / sizeof(float));
  } catch (const std::exception&) {  // bad_alloc, or length_error where no vector can be so long
    Fail("{} layers and {} heads over {} characters need {} bytes for attention weights, more than there is memory",
         config.num_layers, config.num_heads, length, bytes);
  }
}

}  // namespace

HeadStatistics DescribeHead(std::span<const float> weights, std::u32string_view text) {
  const size_t length = text.size();
  const std::vector<std::optional<size_t>> spaces = SpacesBefore(text);
  HeadStatistics statistics;
  for (size_t t = 1; t < length; ++t) {
    const std::span<const float> row = weights.subspan(t * length, t + 1);
    const size_t largest = NearestLargest(row);
    ++statistics.num_previous;
    statistics.previous_largest += largest == t - 1;
    statistics.num_inside += spaces[t].has_value();
    statistics.space_largest += spaces[t] == largest;
    for (size_t s = 0; s <= t; ++s) {
      const double weight = row[s];
      if (t - s <= 2) statistics.recent_share += weight;
      statistics.mean_distance += weight * static_cast<double>(t - s);
    }
  }
  const auto num_rows = static_cast<double>(std::max<size_t>(statistics.num_previous, 1));
  statistics.recent_share /= num_rows;
  statistics.mean_distance /= num_rows;
  return statistics;
}

Attention Attend(const Model& model, std::span<const TokenId> text, const RunOptions& options) {
  CheckText(model, text);
  const ModelConfig& config = model.config();
  Attention attention{text.size(), config.num_layers, config.num_heads, {}, {}};
  attention.weights = WeightsBuffer(config, text.size());
  const Team team(options);
  team.Execute([&] {
    TextPass pass(model, &team, options.kv);
    pass.Read(text, 0, attention.weights.data());
  });
  const std::u32string characters = CharactersOf(model.vocabulary(), text);
  for (size_t layer = 0; layer < config.num_layers; ++layer) {
    for (size_t head = 0; head < config.num_heads; ++head) {
      const std::span<const float> weights = attention.WeightsOf(layer, head);
      if (!std::all_of(weights.begin(), weights.end(), [](float x) { return std::isfinite(x); })) {
        Fail("the attention weights of layer {}, head {} are not finite", layer + 1, head + 1);
      }
      attention.statistics.push_back(DescribeHead(weights, characters));
    }
  }
  return attention;
}

}  // namespace octavo
