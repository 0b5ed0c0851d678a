// Vector bodies of causal attention; see causal_attention.h. Scores and mix are register tiles as in tile-inl.h: a panel of 16 keys is laid
// out as a packed weight tile is, the values are one with the other stride. Written out because the largest score and the exponential are
// taken along while the numbers are in registers.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_CAUSAL_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_CAUSAL_ATTENTION_INL_H_
#undef OCTAVO_KERNELS_CAUSAL_ATTENTION_INL_H_
#else
#define OCTAVO_KERNELS_CAUSAL_ATTENTION_INL_H_
#endif

#include <cmath>

#include "kernels/attention-inl.h"
#include "kernels/causal_attention.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

// Where things lie for one head.
struct HeadTable {
  const float* q;  // of the query panel
  const float* k;  // of panel 0; the next is panel_stride further
  const float* v;
  size_t panel_stride;
  size_t size;
};

// Most keys, or outputs, of a register tile: with AVX-512 a panel's 16 keys at once.
constexpr size_t kCausalTile = kManyRegisters && kVectorsPerPanel == 1 ? 16 : MaxTileOutputs(kVectorsPerPanel);

// Raw scores of kKeys keys of a panel, `keys` at the first of them; raises `largest` to them.
template <size_t kKeys>
HWY_INLINE void CausalScoreTile(const float* HWY_RESTRICT q, const float* HWY_RESTRICT keys, size_t head_size,
                                float* HWY_RESTRICT raw, VF (&largest)[kVectorsPerPanel]) {
  const DF d;
  VF sum[kKeys][kVectorsPerPanel];
  OCTAVO_UNROLL
  for (size_t s = 0; s < kKeys; ++s) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) sum[s][v] = hn::Zero(d);
  }
  for (size_t i = 0; i < head_size; ++i) {
    VF query[kVectorsPerPanel];
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) query[v] = hn::Load(d, q + i * kPanelRows + v * kLanes);
    OCTAVO_UNROLL
    for (size_t s = 0; s < kKeys; ++s) {
      const VF key = hn::Set(d, keys[i * kPanelRows + s]);
      OCTAVO_UNROLL
      for (size_t v = 0; v < kVectorsPerPanel; ++v) sum[s][v] = hn::MulAdd(query[v], key, sum[s][v]);
    }
  }
  OCTAVO_UNROLL
  for (size_t s = 0; s < kKeys; ++s) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      hn::Store(sum[s][v], d, raw + s * kPanelRows + v * kLanes);
      largest[v] = hn::Max(largest[v], sum[s][v]);
    }
  }
}

// Raw scores of a panel's 16 keys, in as few register tiles as fit.
HWY_INLINE void CausalScorePanel(const float* q, const float* keys, size_t head_size, float* raw,
                                 VF (&largest)[kVectorsPerPanel]) {
  if constexpr (kCausalTile == 6) {
    CausalScoreTile<6>(q, keys, head_size, raw, largest);
    CausalScoreTile<5>(q, keys + 6, head_size, raw + 6 * kPanelRows, largest);
    CausalScoreTile<5>(q, keys + 11, head_size, raw + 11 * kPanelRows, largest);
  } else {
    for (size_t s = 0; s < kPanelRows; s += kCausalTile) {
      CausalScoreTile<kCausalTile>(q, keys + s, head_size, raw + s * kPanelRows, largest);
    }
  }
}

// Rows of the query panel's vector v that may read its key number s: row ≥ s.
HWY_INLINE hn::Mask<DF> MayRead(size_t s, size_t v) {
  return hn::Not(hn::FirstN(DF(), s > v * kLanes ? s - v * kLanes : 0));
}

// All raw scores of a query panel and the largest that each row may read: `full` keys, and `diagonal` more in the panel of its own.
OCTAVO_INLINE_BODY void CausalScores(const HeadTable& head, size_t full, size_t diagonal, float* raw,
                                     VF (&largest)[kVectorsPerPanel]) {
  const DF d;
  VF unused[kVectorsPerPanel];
  for (size_t v = 0; v < kVectorsPerPanel; ++v) unused[v] = largest[v] = hn::Set(d, -HUGE_VALF);
  const float* keys = head.k;
  for (size_t s = 0; s < full; s += kPanelRows, keys += head.panel_stride, raw += kPanelRows * kPanelRows) {
    CausalScorePanel(head.q, keys, head.size, raw, largest);
  }
  CausalScorePanel(head.q, keys, head.size, raw, unused);
  for (size_t s = 0; s < diagonal; ++s) {
    for (size_t v = 0; v < kVectorsPerPanel; ++v) {
      const VF score = hn::Load(d, raw + s * kPanelRows + v * kLanes);
      largest[v] = hn::IfThenElse(MayRead(s, v), hn::Max(largest[v], score), largest[v]);
    }
  }
}

// sum[n] += Σ weight[s] · value[s, n] over kKeys keys of a panel from key `s` on. Where kDiagonal, only rows that may read s take part: the
// others get a weight of -0 and a value of +0, whose product changes no sum, not even one that is -0 (8% faster at head size 8 than to choose
// between two sums, which GCC makes three instructions of; Zen 5).
// Where kWeigh, the weights are made of the raw scores first, summed, and left in their place.
template <size_t kOutputs, size_t kKeys, bool kDiagonal, bool kWeigh>
HWY_INLINE void CausalMixKeys(float* HWY_RESTRICT weights, const float* HWY_RESTRICT values, size_t s,
                              Softmaxer& softmaxer, VF (&sum)[kOutputs][kVectorsPerPanel]) {
  const DF d;
  VF weight[kKeys * kVectorsPerPanel];
  float* at = weights + s * kPanelRows;
  if constexpr (kWeigh) {
    const auto keep = [s](size_t k, size_t v, VF w) HWY_ATTR {
      return kDiagonal ? hn::IfThenElse(MayRead(s + k, v), w, hn::Set(DF(), -0.0f)) : w;
    };
    softmaxer.Weigh<kKeys, true>(at, keep, weight);
  } else {
    OCTAVO_UNROLL
    for (size_t i = 0; i < kKeys * kVectorsPerPanel; ++i) weight[i] = hn::Load(d, at + i * kLanes);
  }
  OCTAVO_UNROLL
  for (size_t k = 0; k < kKeys; ++k) {
    OCTAVO_UNROLL
    for (size_t n = 0; n < kOutputs; ++n) {
      const VF value = hn::Set(d, values[n * kPanelRows + s + k]);
      OCTAVO_UNROLL
      for (size_t v = 0; v < kVectorsPerPanel; ++v) {
        const VF read = kDiagonal ? hn::IfThenElseZero(MayRead(s + k, v), value) : value;
        sum[n][v] = hn::MulAdd(weight[k * kVectorsPerPanel + v], read, sum[n][v]);
      }
    }
  }
}

// The same over `count` keys of a panel; only its own, where kDiagonal, may have less than all.
template <size_t kOutputs, bool kDiagonal, bool kWeigh>
HWY_INLINE void CausalMixPanel(float* weights, const float* values, size_t count, Softmaxer& softmaxer,
                               VF (&sum)[kOutputs][kVectorsPerPanel]) {
  size_t s = 0;
  for (; s + kWeighKeys <= count; s += kWeighKeys) {
    CausalMixKeys<kOutputs, kWeighKeys, kDiagonal, kWeigh>(weights, values, s, softmaxer, sum);
  }
  if constexpr (kDiagonal && kWeighKeys > 1) {
    for (; s < count; ++s) CausalMixKeys<kOutputs, 1, kDiagonal, kWeigh>(weights, values, s, softmaxer, sum);
  }
}

// out[n] = Σ_s weight[s] · value[s, n] / Σ_s weight[s] for kOutputs numbers from `values` on.
template <size_t kOutputs, bool kWeigh>
OCTAVO_INLINE_BODY void CausalMix(float* weights, const float* values, size_t panel_stride, size_t full,
                                  size_t diagonal, Softmaxer& softmaxer, float* out) {
  const DF d;
  VF sum[kOutputs][kVectorsPerPanel];
  OCTAVO_UNROLL
  for (size_t n = 0; n < kOutputs; ++n) {
    OCTAVO_UNROLL
    for (size_t v = 0; v < kVectorsPerPanel; ++v) sum[n][v] = hn::Zero(d);
  }
  for (size_t s = 0; s < full; s += kPanelRows, values += panel_stride) {
    CausalMixPanel<kOutputs, false, kWeigh>(weights + s * kPanelRows, values, kPanelRows, softmaxer, sum);
  }
  CausalMixPanel<kOutputs, true, kWeigh>(weights + full * kPanelRows, values, diagonal, softmaxer, sum);
  OCTAVO_UNROLL
  for (size_t v = 0; v < kVectorsPerPanel; ++v) {
    const VF normalizer = softmaxer.Normalizer(v);
    OCTAVO_UNROLL
    for (size_t n = 0; n < kOutputs; ++n)
      hn::Store(hn::Mul(sum[n][v], normalizer), d, out + n * kPanelRows + v * kLanes);
  }
}

// A power of two, as head sizes are: six outputs would leave two of eight.
constexpr size_t kCausalMixTile = kCausalTile == 6 ? 4 : kCausalTile;

// Mixes the rest of a head's numbers, from i on: tiles of kOutputs while they fit, then of half as many.
template <size_t kOutputs, bool kWeigh>
HWY_INLINE void CausalMixRest(size_t i, const HeadTable& head, float* weights, size_t full, size_t diagonal,
                              Softmaxer& softmaxer, float* out) {
  if constexpr (kWeigh) {
    // The first tile makes the weights.
    if constexpr (kOutputs > 1) {
      if (head.size < kOutputs)
        return CausalMixRest<kOutputs / 2, true>(i, head, weights, full, diagonal, softmaxer, out);
    }
    CausalMix<kOutputs, true>(weights, head.v, head.panel_stride, full, diagonal, softmaxer, out);
    return CausalMixRest<kOutputs, false>(kOutputs, head, weights, full, diagonal, softmaxer, out);
  } else {
    for (; i + kOutputs <= head.size; i += kOutputs) {
      CausalMix<kOutputs, false>(weights, head.v + i * kPanelRows, head.panel_stride, full, diagonal, softmaxer,
                                 out + i * kPanelRows);
    }
    if constexpr (kOutputs > 1) CausalMixRest<kOutputs / 2, false>(i, head, weights, full, diagonal, softmaxer, out);
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
  for (size_t h = 0; h < num_heads; ++h) {
    const float* base = qkv + h * head_size * kPanelRows;
    HeadTable head{base, base + width * kPanelRows, base + 2 * width * kPanelRows, panel_stride, head_size};
    for (size_t panel = first_panel; panel < NumPanels(length); ++panel) {
      head.q = base + panel * panel_stride;
      const size_t full = panel * kPanelRows, diagonal = HWY_MIN(length - full, kPanelRows);
      VF largest[kVectorsPerPanel];
      CausalScores(head, full, diagonal, scratch, largest);
      Softmaxer softmaxer(scale, largest);
      float* to = out + (panel * width + h * head_size) * kPanelRows;
      CausalMixRest<kCausalMixTile, true>(0, head, scratch, full, diagonal, softmaxer, to);
      if (weights) {
        HWY_ALIGN float normalizer[kPanelRows];
        for (size_t v = 0; v < kVectorsPerPanel; ++v) hn::Store(softmaxer.Normalizer(v), d, normalizer + v * kLanes);
        StoreWeights(scratch, normalizer, full, length, weights + h * length * length);
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
