// Vector bodies of causal attention; see causal_attention.h. A panel of 16 keys is itself a packed weight tile, so scores are the matrix
// product's register tile; mixing is the same shape with the values' other stride.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_CAUSAL_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_CAUSAL_ATTENTION_INL_H_
#undef OCTAVO_KERNELS_CAUSAL_ATTENTION_INL_H_
#else
#define OCTAVO_KERNELS_CAUSAL_ATTENTION_INL_H_
#endif

#include "kernels/attention-inl.h"
#include "kernels/causal_attention.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

// Where things lie for one head.
struct Head {
  const float* q;  // of the query panel
  const float* k;  // of panel 0; the next is panel_stride further
  const float* v;
  size_t panel_stride;
  size_t size;
};

// raw[s, row] for all keys of panels 0 … num_panels - 1.
HWY_INLINE void CausalScores(const Head& head, size_t num_panels, float* raw) {
  HWY_ALIGN static constexpr float kZeros[kTileOutputs] = {};
  for (size_t panel = 0; panel < num_panels; ++panel) {
    Destination to[kPanelRows];
    for (size_t s = 0; s < kPanelRows; ++s) to[s] = {raw + (panel * kPanelRows + s) * kPanelRows, 0};
    RunPackedTile<1, TileStore::kSet>(kPanelRows, head.q, 0, head.size, head.k + panel * head.panel_stride, kPanelRows,
                                      kZeros, to);
  }
}

// Rows of the query panel that may read its key number s: row ≥ s.
HWY_INLINE hn::Mask<DF> MayRead(size_t s, size_t v) {
  const DF d;
  return hn::Ge(hn::Iota(d, static_cast<float>(v * kLanes)), hn::Set(d, static_cast<float>(s)));
}

// Raw scores to unnormalised weights in place, over `full` keys that all rows read and `diagonal` more; 1 / their sum.
HWY_INLINE VF CausalWeightsInPlace(float* raw, size_t full, size_t diagonal, size_t v, VF scale) {
  const DF d;
  VF largest = hn::Set(d, -HUGE_VALF);
  for (size_t s = 0; s < full; ++s) largest = hn::Max(largest, hn::Load(d, raw + s * kPanelRows));
  for (size_t s = 0; s < diagonal; ++s) {
    const VF score = hn::Load(d, raw + (full + s) * kPanelRows);
    largest = hn::IfThenElse(MayRead(s, v), hn::Max(largest, score), largest);
  }
  largest = hn::Mul(largest, scale);
  VF sum = hn::Zero(d);
  for (size_t s = 0; s < full; ++s) {
    const VF weight = AttentionWeight(hn::Load(d, raw + s * kPanelRows), scale, largest);
    sum = hn::Add(sum, weight);
    hn::Store(weight, d, raw + s * kPanelRows);
  }
  for (size_t s = 0; s < diagonal; ++s) {
    float* at = raw + (full + s) * kPanelRows;
    const VF weight = hn::IfThenElseZero(MayRead(s, v), AttentionWeight(hn::Load(d, at), scale, largest));
    sum = hn::Add(sum, weight);
    hn::Store(weight, d, at);
  }
  return hn::Div(hn::Set(d, 1.0f), sum);
}

// out[i] = Σ_s weights[s] · v[s, i] · normalizer for kOutputs numbers i from `values` on.
template <size_t kOutputs>
HWY_INLINE void CausalMix(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT values, size_t panel_stride,
                          size_t full, size_t diagonal, const VF* normalizer, float* HWY_RESTRICT out) {
  const DF d;
  VF sum[kOutputs][kVectorsPerPanel];
  OCTAVO_UNROLL
  for (size_t n = 0; n < kOutputs; ++n) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) sum[n][v] = hn::Zero(d);
  }
  for (size_t begin = 0; begin < full; begin += kPanelRows, values += panel_stride) {
    for (size_t s = 0; s < kPanelRows; ++s, weights += kPanelRows) {
      VF weight[kVectorsPerPanel];
      OCTAVO_UNROLL
      for (size_t v = 0; v < kVectorsPerPanel; ++v) weight[v] = hn::Load(d, weights + v * kLanes);
      OCTAVO_UNROLL
      for (size_t n = 0; n < kOutputs; ++n) {
        const VF value = hn::Set(d, values[n * kPanelRows + s]);
        OCTAVO_UNROLL
        for (size_t v = 0; v < kVectorsPerPanel; ++v) sum[n][v] = hn::MulAdd(weight[v], value, sum[n][v]);
      }
    }
  }
  for (size_t s = 0; s < diagonal; ++s, weights += kPanelRows) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      const auto may_read = MayRead(s, v);
      const VF weight = hn::Load(d, weights + v * kLanes);
      OCTAVO_UNROLL
      for (size_t n = 0; n < kOutputs; ++n) {
        const VF value = hn::Set(d, values[n * kPanelRows + s]);
        sum[n][v] = hn::IfThenElse(may_read, hn::MulAdd(weight, value, sum[n][v]), sum[n][v]);
      }
    }
  }
  OCTAVO_UNROLL
  for (size_t n = 0; n < kOutputs; ++n) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      hn::Store(hn::Mul(sum[n][v], normalizer[v]), d, out + n * kPanelRows + v * kLanes);
    }
  }
}

template <size_t kMost>
HWY_INLINE void CausalMixOf(size_t outputs, const float* weights, const float* values, size_t panel_stride, size_t full,
                            size_t diagonal, const VF* normalizer, float* out) {
  if constexpr (kMost > 0) {
    if (outputs == kMost) return CausalMix<kMost>(weights, values, panel_stride, full, diagonal, normalizer, out);
    CausalMixOf<kMost - 1>(outputs, weights, values, panel_stride, full, diagonal, normalizer, out);
  }
}

// Row-major rows of normalised weights, zeros behind the diagonal; `first` is the panel's first position.
HWY_INLINE void StoreWeights(const float* weights, const float* normalizer, size_t first, size_t length, float* out) {
  for (size_t r = 0; r < kPanelRows && first + r < length; ++r) {
    float* row = out + (first + r) * length;
    for (size_t s = 0; s < length; ++s) row[s] = s <= first + r ? weights[s * kPanelRows + r] * normalizer[r] : 0.0f;
  }
}

HWY_NOINLINE void CausalAttention(const float* qkv, size_t length, size_t first_panel, size_t num_heads,
                                  size_t head_size, float* out, float* weights, float* scratch) {
  const DF d;
  const size_t width = num_heads * head_size, panel_stride = 3 * width * kPanelRows;
  const VF scale = ScoreScale(head_size);
  constexpr size_t kMost = MaxTileOutputs(kVectorsPerPanel);
  const size_t pieces = (head_size + kMost - 1) / kMost;
  for (size_t h = 0; h < num_heads; ++h) {
    const float* base = qkv + h * head_size * kPanelRows;
    Head head{base, base + width * kPanelRows, base + 2 * width * kPanelRows, panel_stride, head_size};
    for (size_t panel = first_panel; panel < NumPanels(length); ++panel) {
      head.q = base + panel * panel_stride;
      CausalScores(head, panel + 1, scratch);
      const size_t full = panel * kPanelRows, diagonal = HWY_MIN(length - full, kPanelRows);
      VF normalizer[kVectorsPerPanel];
      for (size_t v = 0; v < kVectorsPerPanel; ++v) {
        normalizer[v] = CausalWeightsInPlace(scratch + v * kLanes, full, diagonal, v, scale);
      }
      float* to = out + (panel * width + h * head_size) * kPanelRows;
      for (size_t piece = 0, i = 0; piece < pieces; ++piece) {
        const size_t count = head_size / pieces + (piece < head_size % pieces);
        CausalMixOf<kMost>(count, scratch, head.v + i * kPanelRows, panel_stride, full, diagonal, normalizer,
                           to + i * kPanelRows);
        i += count;
      }
      if (weights) {
        HWY_ALIGN float per_row[kPanelRows];
        for (size_t v = 0; v < kVectorsPerPanel; ++v) hn::Store(normalizer[v], d, per_row + v * kLanes);
        StoreWeights(scratch, per_row, full, length, weights + h * length * length);
      }
    }
  }
}

HWY_NOINLINE void CausalAttentionTable(const float* table, size_t num_rows, size_t length, size_t num_heads,
                                       size_t head_size, float* out, float* weights, float* scratch) {
  const size_t width = num_heads * head_size;
  float* qkv = scratch;
  float* mixed = qkv + PanelFloats(length, 3 * width);
  float* raw = mixed + PanelFloats(length, width);
  for (size_t row = 0; row < num_rows; ++row) {
    const auto panel_index = [](size_t t, size_t f, size_t features) {
      return (t / kPanelRows * features + f) * kPanelRows + t % kPanelRows;
    };
    for (size_t t = 0; t < length; ++t) {
      for (size_t f = 0; f < 3 * width; ++f) qkv[panel_index(t, f, 3 * width)] = table[t * 3 * width + f];
    }
    CausalAttention(qkv, length, 0, num_heads, head_size, mixed, weights, raw);
    for (size_t t = 0; t < length; ++t) {
      for (size_t f = 0; f < width; ++f) out[t * width + f] = mixed[panel_index(t, f, width)];
    }
    table += length * 3 * width;
    out += length * width;
    if (weights) weights += num_heads * length * length;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_CAUSAL_ATTENTION_INL_H_
