// The keys and values that a group of sequences has read, each sequence in a lane of its own: a ring of slots, one a step, as floats or as
// pairs of bfloat16 (kernels/decode_attention.h has the layouts).
#ifndef OCTAVO_ENGINE_KV_CACHE_H_
#define OCTAVO_ENGINE_KV_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/aligned.h"
#include "engine/config.h"
#include "engine/run_options.h"
#include "kernels/panel.h"
#include "kernels/qkv.h"

namespace octavo {

class KvCache {
 public:
  // For panels of 16 lanes. Memory is only taken where it is used. Throws Error when there is not enough address space.
  KvCache(const ModelConfig& config, size_t num_panels, KvPrecision kv);

  // What that takes at most: 2·layers·context·width·16 numbers a panel. Throws Error when it cannot be counted.
  static size_t Bytes(const ModelConfig& config, size_t num_panels, KvPrecision kv);

  // Begins a step: from here on another slot is the newest.
  void Advance();

  // Where the newest keys and values of a layer are to be written, and what is to be called when those of `num_panels` are there.
  HeadLayout NewKeys(size_t layer);
  HeadLayout NewValues(size_t layer);
  void Store(size_t layer, size_t num_panels);

  // Attention of heads [head, head + count) of a panel; q and out are at its first feature. As DecodeAttention.
  void Attend(size_t layer, size_t panel, size_t head, size_t count, const float* q, const int32_t* lengths, float* out,
              float* scratch) const;

  // Gives a lane the first `count` positions of a text as if the next step came behind them. `table`: panels of positions, q | k | v.
  void Load(size_t layer, size_t lane, const float* table, size_t count);

 private:
  bool is_paired() const { return kv_ == KvPrecision::kBf16; }
  // In numbers or pairs, as are the offsets.
  size_t SlotSize() const;
  size_t HeadStride() const { return slots_ * SlotSize() * kPanelRows; }
  size_t Offset(size_t layer, size_t panel) const { return (layer * panels_ + panel) * heads_ * HeadStride(); }
  // To a head's slot.
  size_t Place(size_t slot) const { return places_[slot] * SlotSize() * kPanelRows; }
  HeadLayout Newest(Untouched<float>& part, AlignedFloats& unpaired, size_t layer);

  const size_t heads_, head_size_, slots_, panels_;
  const KvPrecision kv_;
  size_t newest_slot_ = 0;
  std::vector<uint32_t> places_;                     // of slots, see FillPlaces
  Untouched<float> keys_, values_;                   // [layers][panels][heads][slots][head_size][16]
  Untouched<uint32_t> paired_keys_, paired_values_;  // [layers][panels][heads][slots][pairs][16]
  AlignedFloats new_keys_, new_values_;              // of a step, before they are paired: panels
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_KV_CACHE_H_
