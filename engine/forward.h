// The forward pass in the vector kernels, in its two forms: one text, 16 positions in the lanes (TextPass), and many sequences a step at a
// time, 16 sequences in the lanes (StepPass). Both give a position the same bits; see reference_pass.h for the specification.
#ifndef OCTAVO_ENGINE_FORWARD_H_
#define OCTAVO_ENGINE_FORWARD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/aligned.h"
#include "engine/kv_cache.h"
#include "engine/model.h"
#include "engine/run_options.h"
#include "kernels/panel.h"

namespace octavo {

class Team;

// Panels of one pass. Rows are positions or sequences; each buffer is whole panels.
struct Workspace {
  AlignedFloats x;        // residual stream, [rows, width]
  AlignedFloats normed;   // [rows, width]
  AlignedFloats mixed;    // attention's values, [rows, width]
  AlignedFloats inner;    // [rows, inner_width]
  AlignedFloats logits;   // [rows, vocabulary_size]
  AlignedFloats scratch;  // the attention kernels'
};

// Prefill, scoring and windows: reads a text from position 0 on.
class TextPass {
 public:
  // `model` and `team`, whose threads share the work, must outlive the pass; null: one thread.
  explicit TextPass(const Model& model, const Team* team = nullptr, KvPrecision kv = KvPrecision::kF32);

  // Reads `tokens`, 1 to context_length of them. Only positions from `first_needed` on will be asked for logits, which saves work in the
  // last layer. `weights`, if not null, gets [layers, heads, T, T], T = tokens.size(); first_needed must be 0 then.
  void Read(std::span<const TokenId> tokens, size_t first_needed, float* weights = nullptr);

  // Logits of panel `panel` of the text just read (rows 16·panel …): [vocabulary_size][16], valid until the next call.
  const float* Logits(size_t panel);

  // Queries, keys and values of the text just read: panels of 16 positions, features q | k | v, 3·width in all.
  const float* Table(size_t layer) const;

 private:
  const Model& model_;
  const Team* team_;
  const KvPrecision kv_;
  size_t length_ = 0;
  Workspace work_;
  std::vector<AlignedFloats> tables_;  // by layer: panels of positions, 3·width features
  std::vector<int32_t> tokens_, positions_;
};

// Generation: a group of sequences, each in a lane of its own, with a cache of keys and values.
class StepPass {
 public:
  // As TextPass. Memory for the cache is only taken where it is used. Throws Error when there is not enough address space.
  StepPass(const Model& model, size_t num_panels, const Team* team = nullptr, KvPrecision kv = KvPrecision::kF32);

  size_t num_lanes() const { return num_panels_ * kPanelRows; }

  // One step: lane r reads tokens[r] at positions[r], behind the positions[r] characters that it read before; position 0 begins anew.
  // Lanes from `num_live` on are idle. Returns logits, [panels][vocabulary_size][16], valid until the next call.
  float* Step(const int32_t* tokens, const int32_t* positions, size_t num_live);

  // Gives lane `lane` the first `count` characters of the text that `pass` read, as if it had read them step by step.
  void Load(size_t lane, const TextPass& pass, size_t count);

 private:
  void Attend(size_t layer, const int32_t* positions, size_t num_live);

  const Model& model_;
  const Team* team_;
  const size_t num_panels_;
  KvCache cache_;
  AlignedFloats q_;
  Workspace work_;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_FORWARD_H_
