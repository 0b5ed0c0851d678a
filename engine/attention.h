// What each head of a model reads in a text: its attention weights, and in four numbers where it looks.
#ifndef OCTAVO_ENGINE_ATTENTION_H_
#define OCTAVO_ENGINE_ATTENTION_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "engine/model.h"
#include "engine/run_options.h"

namespace octavo {

// Of one head over one text. Of equal largest weights in a row, the one nearest to the reading position counts as the largest.
//
// A word is a run of characters that are not white space (Unicode's property). Positions inside a word are those behind its first
// character, where a space, U+0020, stands right before the word.
struct HeadStatistics {
  size_t num_previous = 0;      // positions that have a previous character: all but the first
  size_t previous_largest = 0;  // those of them where it gets the largest weight
  size_t num_inside = 0;        // positions inside a word
  size_t space_largest = 0;     // those of them where the space before the word gets the largest weight
  // Means over all positions but the first; 0 where there is no other.
  double recent_share = 0;   // weight on the character itself and the two before it
  double mean_distance = 0;  // Σ_s weight[t, s] · (t - s): how many characters back
};

// Of the weights [T, T] of one head, row-major, T = text.size() characters; only s ≤ t is read. Cost: T² / 2 steps.
HeadStatistics DescribeHead(std::span<const float> weights, std::u32string_view text);

struct Attention {
  size_t length = 0, num_layers = 0, num_heads = 0;
  std::vector<float> weights;  // [layers, heads, length, length]; row t reads, column s is read; 0 for s > t
  std::vector<HeadStatistics> statistics;  // [layers, heads]

  // Of one head, both counted from 0.
  std::span<const float> WeightsOf(size_t layer, size_t head) const {
    return std::span(weights).subspan((layer * num_heads + head) * length * length, length * length);
  }
  const HeadStatistics& StatisticsOf(size_t layer, size_t head) const { return statistics[layer * num_heads + head]; }
};

// Reads `text`, 1 to context_length characters. The options' threads and kv count. Any number of threads may call it at once. Throws Error
// for a text of another length, an id outside the vocabulary, and weights that are not finite.
Attention Attend(const Model& model, std::span<const TokenId> text, const RunOptions& options = {});

}  // namespace octavo

#endif  // OCTAVO_ENGINE_ATTENTION_H_
