// Keys and values of a group of sequences; see kv_cache.h.
#include "engine/kv_cache.h"

#include <bit>
#include <new>
#include <type_traits>

#include "engine/fail.h"
#include "kernels/decode_attention.h"

namespace octavo {

KvCache::KvCache(const ModelConfig& config, size_t num_panels, KvPrecision kv)
    : heads_(config.num_heads),
      head_size_(config.head_size()),
      slots_(config.context_length),
      panels_(num_panels),
      kv_(kv),
      places_(2 * slots_) {
  FillPlaces(slots_, Bytes(config, 1, kv) <= kScatteredBytes, places_.data());
  const size_t bytes = Bytes(config, num_panels, kv), count = bytes / 2 / sizeof(float);
  try {
    if (is_paired()) {
      paired_keys_ = Untouched<uint32_t>(count);
      paired_values_ = Untouched<uint32_t>(count);
      new_keys_.resize(num_panels * PanelFloats(kPanelRows, config.width));
      new_values_.resize(new_keys_.size());
    } else {
      keys_ = Untouched<float>(count);
      values_ = Untouched<float>(count);
    }
  } catch (const std::bad_alloc&) {
    Fail("the keys and values of {} texts of {} characters take {} bytes, more than there is memory",
         num_panels * kPanelRows, config.context_length, bytes);
  }
}

size_t KvCache::Bytes(const ModelConfig& config, size_t num_panels, KvPrecision kv) {
  size_t bytes = 2 * sizeof(float) * kPanelRows;
  const size_t words = kv == KvPrecision::kF32 ? config.head_size() : NumPairs(config.head_size());
  for (const size_t factor : {num_panels, config.num_layers, config.context_length, config.num_heads, words}) {
    if (__builtin_mul_overflow(bytes, factor, &bytes)) {
      Fail("{} layers, context {} and width {} need more bytes for keys and values than can be counted",
           config.num_layers, config.context_length, config.width);
    }
  }
  return bytes;
}

size_t KvCache::SlotSize() const { return is_paired() ? NumPairs(head_size_) : head_size_; }

void KvCache::Advance() { newest_slot_ = newest_slot_ + 1 == slots_ ? 0 : newest_slot_ + 1; }

HeadLayout KvCache::Newest(Untouched<float>& part, AlignedFloats& unpaired, size_t layer) {
  if (is_paired()) return {unpaired.data(), heads_ * head_size_ * kPanelRows, head_size_ * kPanelRows};
  return {part.data() + Offset(layer, 0) + Place(newest_slot_), Offset(0, 1), HeadStride()};
}

HeadLayout KvCache::NewKeys(size_t layer) { return Newest(keys_, new_keys_, layer); }
HeadLayout KvCache::NewValues(size_t layer) { return Newest(values_, new_values_, layer); }

void KvCache::Store(size_t layer, size_t num_panels) {
  for (size_t panel = 0; is_paired() && panel < num_panels; ++panel) {
    const size_t from = panel * heads_ * head_size_ * kPanelRows;
    const size_t to = Offset(layer, panel) + Place(newest_slot_);
    StorePairs(new_keys_.data() + from, heads_, head_size_, paired_keys_.data() + to, HeadStride());
    StorePairs(new_values_.data() + from, heads_, head_size_, paired_values_.data() + to, HeadStride());
  }
}

void KvCache::Attend(size_t layer, size_t panel, size_t head, size_t count, const float* q, const int32_t* lengths,
                     float* out, float* scratch) const {
  const size_t first = Offset(layer, panel) + head * HeadStride();
  const auto attend = [&]<typename T>(const T* keys, const T* values) {
    const DecodeCacheOf<T> cache{keys + first, values + first, HeadStride(), slots_, newest_slot_, places_.data()};
    DecodeAttention(q, cache, lengths, count, head_size_, out, scratch);
  };
  if (is_paired()) {
    attend(paired_keys_.data(), paired_values_.data());
  } else {
    attend(keys_.data(), values_.data());
  }
}

void KvCache::Load(size_t layer, size_t lane, const float* table, size_t count) {
  const size_t width = heads_ * head_size_, panel = lane / kPanelRows, row = lane % kPanelRows;
  const auto fill = [&]<typename T>(T* cache, size_t part) {
    constexpr size_t kNumbers = std::is_same_v<T, float> ? 1 : 2;
    cache += Offset(layer, panel) + row;
    for (size_t t = 0; t < count; ++t) {
      // The next step takes the slot behind newest_slot_; position count - 1 belongs in newest_slot_ itself.
      const size_t slot = (newest_slot_ + slots_ - (count - 1 - t)) % slots_;
      const float* from = table + (t / kPanelRows * 3 + part) * width * kPanelRows + t % kPanelRows;
      for (size_t h = 0; h < heads_; ++h, from += head_size_ * kPanelRows) {
        T* to = cache + h * HeadStride() + Place(slot);
        for (size_t i = 0; i < head_size_; i += kNumbers, to += kPanelRows) {
          const float* number = from + i * kPanelRows;
          if constexpr (kNumbers == 1) {
            *to = *number;
          } else {
            // They are rounded already.
            const uint32_t odd = i + 1 < head_size_ ? std::bit_cast<uint32_t>(number[kPanelRows]) : 0;
            *to = std::bit_cast<uint32_t>(*number) >> 16 | odd;
          }
        }
      }
    }
  };
  if (is_paired()) {
    fill(paired_keys_.data(), 1);
    fill(paired_values_.data(), 2);
  } else {
    fill(keys_.data(), 1);
    fill(values_.data(), 2);
  }
}

}  // namespace octavo
