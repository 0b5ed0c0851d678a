// Cases of the attention kernels.
#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>

#include "engine/check/case.h"
#include "kernels/attention_bound.h"
#include "kernels/causal_attention.h"
#include "kernels/decode_attention.h"
#include "kernels/math_bounds.h"
#include "kernels/reference/causal_attention.h"
#include "kernels/reference/decode_attention.h"
#include "kernels/strict_math.h"

namespace octavo::check {
namespace {

// The bound's relative part for one query and head, 2δ + (length + c) · 2^-24, from row-major q and keys.
double RelativeBound(const double* q, const double* keys, size_t stride, size_t length, size_t size) {
  double largest = 0;
  for (size_t s = 0; s < length; ++s) {
    double sum = 0;
    for (size_t i = 0; i < size; ++i) sum += std::abs(q[i] * keys[s * stride + i]);
    largest = std::max(largest, sum);
  }
  const double scores = (static_cast<double>(size) + kScoreBound) * largest / std::sqrt(static_cast<double>(size));
  return TargetSlack() * (2 * scores + static_cast<double>(length) + kWeightBound) * kRoundoff;
}

using WeightAt = std::function<double(size_t head, size_t position)>;

// Compares position t's output and, where weight_at is not empty, its weights with the reference. `table` is row-major q | k | v.
void ComparePosition(const std::vector<double>& table, size_t t, size_t heads, size_t size,
                     const std::function<double(size_t feature)>& out_at, const WeightAt& weight_at, Outcome& outcome) {
  const size_t width = heads * size, stride = 3 * width, length = t + 1;
  const double* keys = table.data() + width;
  const double* query = table.data() + t * stride;
  std::vector<double> expected(width), weights(heads * length), scratch(length);
  reference::DecodeAttention(query, keys, keys + width, stride, length, heads, size, expected.data(), weights.data(),
                             length, scratch.data());
  for (size_t h = 0; h < heads; ++h) {
    const double relative = RelativeBound(query + h * size, keys + h * size, stride, length, size);
    for (size_t i = 0; i < size; ++i) {
      double sum = 0;
      for (size_t s = 0; s < length; ++s)
        sum += weights[h * length + s] * std::abs(keys[s * stride + width + h * size + i]);
      outcome.Compare(out_at(h * size + i), expected[h * size + i], relative * sum + kExpUnderflow,
                      "mixed values differ from the reference");
    }
    for (size_t s = 0; weight_at && s < length; ++s) {
      const double weight = weights[h * length + s];
      outcome.Compare(weight_at(h, s), weight, relative * weight + kExpUnderflow, "weights differ from the reference");
    }
  }
}

// Mostly small, which finds remainders; sometimes heads of the sizes that GPT-2 and its kin have, sometimes long.
AttentionShape RandomAttentionShape(Random& random) {
  switch (random.Below(32)) {
    case 0:
      return {random.Size(48), random.Between(1, 2), kLargeHeads[random.Below(std::size(kLargeHeads))]};
    case 1:
      return {random.Between(71, 300), 1, random.Size(16)};
    default:
      return {random.Size(70), random.Between(1, 4), random.Size(34)};
  }
}

// Row-major q | k | v of `length` positions. One in eight has values so small that their products with weights underflow, to -0 too.
std::vector<float> RandomTable(Random& random, size_t length, const AttentionShape& shape) {
  const size_t width = shape.num_heads * shape.head_size;
  std::vector<float> table = random.Hostile(length * 3 * width, 1.0 / std::sqrt(static_cast<double>(shape.head_size)));
  if (random.Below(8) > 0) return table;
  for (size_t t = 0; t < length; ++t) {
    for (size_t f = 2 * width; f < 3 * width; ++f)
      table[t * 3 * width + f] = random.Below(4) == 0 ? -0x1p-149f : random.Below(8) == 0 ? 0x1p-149f : -0.0f;
  }
  return table;
}

}  // namespace

Outcome CheckCausalAttention(Random& random) { return CheckCausalAttention(random, RandomAttentionShape(random)); }

Outcome CheckCausalAttention(Random& random, const AttentionShape& shape) {
  Outcome outcome;
  const size_t length = shape.length, heads = shape.num_heads, size = shape.head_size;
  const size_t width = heads * size, anywhere = AnyAlignment(random);
  const std::vector<float> values = RandomTable(random, length, shape);
  Panels qkv(values, length, 3 * width), out(length, width);
  Guarded<float> weights(heads * length * length, anywhere), scratch(PanelFloats(length, kPanelRows), kPanelAlignment);
  CausalAttention(qkv.data(), length, 0, heads, size, out.data(), weights.data(), scratch.data());
  const std::vector<double> table = ToDoubles(values);
  for (size_t t = 0; t < length; ++t) {
    ComparePosition(
        table, t, heads, size, [&](size_t f) { return static_cast<double>(out.at(t, f)); },
        [&](size_t h, size_t s) { return static_cast<double>(weights[(h * length + t) * length + s]); }, outcome);
    for (size_t f = 0; f < width; ++f) outcome.Record(out.at(t, f));
    for (size_t s = t + 1; s < length; ++s) {
      for (size_t h = 0; h < heads; ++h)
        outcome.Require(weights[(h * length + t) * length + s] == 0, "weight above the diagonal");
    }
  }
  // What stands later must not be seen, whatever it is; and panels left out must not be touched.
  const size_t cut = random.Below(length), panel = random.Below(NumPanels(length));
  Panels later(values, length, 3 * width), again(length, width);
  for (size_t t = cut + 1; t < length; ++t) {
    for (size_t f = 0; f < 3 * width; ++f) later.at(t, f) = std::numeric_limits<float>::quiet_NaN();
  }
  CausalAttention(later.data(), length, panel, heads, size, again.data(), nullptr, scratch.data());
  for (size_t t = 0; t <= cut; ++t) {
    for (size_t f = 0; f < width; ++f) {
      const bool computed = t >= panel * kPanelRows;
      if (computed) outcome.RequireSameBits(again.at(t, f), out.at(t, f), "a later position was read");
      if (!computed) outcome.Require(std::isnan(again.at(t, f)), "wrote a panel that was left out");
    }
  }
  // Nor its absence: a text that ends there.
  Panels ended(cut + 1, width);
  CausalAttention(qkv.data(), cut + 1, cut / kPanelRows, heads, size, ended.data(), nullptr, scratch.data());
  for (size_t f = 0; f < width; ++f)
    outcome.RequireSameBits(ended.at(cut, f), out.at(cut, f), "a shorter text gives other bits");
  // The same from a row-major table.
  const Guarded<float> rows(values, anywhere);
  Guarded<float> mixed(length * width, anywhere), table_weights(weights.size(), anywhere),
      table_scratch(CausalAttentionTableScratch(length, heads, size), kPanelAlignment);
  CausalAttentionTable(rows.data(), 1, length, heads, size, mixed.data(), table_weights.data(), table_scratch.data());
  for (size_t t = 0; t < length; ++t) {
    for (size_t f = 0; f < width; ++f)
      outcome.RequireSameBits(mixed[t * width + f], out.at(t, f), "tables give other bits than panels");
  }
  for (size_t i = 0; i < weights.size(); ++i)
    outcome.RequireSameBits(table_weights[i], weights[i], "tables give other weights than panels");
  outcome.Require(out.Intact() && weights.Intact() && scratch.Intact() && mixed.Intact() && table_weights.Intact() &&
                      table_scratch.Intact(),
                  "wrote outside");
  return outcome;
}

namespace {

// Rounded to bfloat16, in pairs or as floats: the same bits.
void CheckPairedCache(Panels& q, const DecodeCache& cache, const int32_t* lengths, size_t heads, size_t size,
                      Outcome& outcome) {
  const size_t slots = cache.num_slots, width = heads * size, stride = slots * NumPairs(size) * kPanelRows;
  Guarded<float> rounded[2] = {Guarded<float>(heads * cache.head_stride, kPanelAlignment),
                               Guarded<float>(heads * cache.head_stride, kPanelAlignment)};
  Guarded<uint32_t> paired[2] = {Guarded<uint32_t>(heads * stride, kPanelAlignment),
                                 Guarded<uint32_t>(heads * stride, kPanelAlignment)};
  const float* const plain[2] = {cache.keys, cache.values};
  for (size_t part = 0; part < 2; ++part) {
    for (size_t slot = 0; slot < slots; ++slot) {
      Guarded<float> panel(width * kPanelRows, kPanelAlignment);
      for (size_t h = 0; h < heads; ++h) {
        const float* from = plain[part] + h * cache.head_stride + cache.places[slot] * size * kPanelRows;
        std::copy(from, from + size * kPanelRows, panel.data() + h * size * kPanelRows);
      }
      StorePairs(panel.data(), heads, size, paired[part].data() + cache.places[slot] * NumPairs(size) * kPanelRows,
                 stride);
      RoundToBfloat16(panel.data(), width);
      for (size_t h = 0; h < heads; ++h) {
        const float* from = panel.data() + h * size * kPanelRows;
        std::copy(from, from + size * kPanelRows,
                  rounded[part].data() + h * cache.head_stride + cache.places[slot] * size * kPanelRows);
        for (size_t at = 0; at < size * kPanelRows; ++at) {
          // Nearest, ties to even, against the plain definition.
          const float before = plain[part][h * cache.head_stride + cache.places[slot] * size * kPanelRows + at],
                      after = from[at];
          const auto bits = std::bit_cast<uint32_t>(after);
          const double step = std::isfinite(before) ? std::ldexp(1.0, std::max(std::ilogb(before), -126) - 7) : 0;
          outcome.Require((bits & 0xFFFF) == 0, "not a bfloat16");
          outcome.Require(std::isnan(before) == std::isnan(after), "rounding lost or made a NaN");
          outcome.Require(
              !(std::isfinite(before) && std::isfinite(after)) || std::abs(double{after} - double{before}) <= step / 2,
              "not rounded to the nearest");
        }
      }
      outcome.Require(panel.Intact(), "wrote outside");
    }
  }
  Panels expected(kPanelRows, width), out(kPanelRows, width);
  Guarded<float> scratch(kPanelRows * slots, kPanelAlignment);
  DecodeCache plain_cache = cache;
  plain_cache.keys = rounded[0].data();
  plain_cache.values = rounded[1].data();
  DecodeAttention(q.data(), plain_cache, lengths, heads, size, expected.data(), scratch.data());
  const PairedDecodeCache paired_cache{paired[0].data(),  paired[1].data(), stride, slots,
                                       cache.newest_slot, cache.places};
  DecodeAttention(q.data(), paired_cache, lengths, heads, size, out.data(), scratch.data());
  for (size_t r = 0; r < kPanelRows; ++r) {
    for (size_t f = 0; f < width; ++f) {
      outcome.RequireSameBits(out.at(r, f), expected.at(r, f), "pairs give other bits than rounded floats");
      outcome.Record(out.at(r, f));
    }
  }
  outcome.Require(out.Intact() && paired[0].Intact() && paired[1].Intact() && scratch.Intact(), "wrote outside");
}

}  // namespace

Outcome CheckDecodeAttention(Random& random) { return CheckDecodeAttention(random, RandomAttentionShape(random)); }

Outcome CheckDecodeAttention(Random& random, const AttentionShape& shape) {
  Outcome outcome;
  const size_t slots = shape.length, heads = shape.num_heads, size = shape.head_size, width = heads * size;
  const size_t head_stride = slots * size * kPanelRows, newest = random.Below(slots);
  Guarded<float> keys(heads * head_stride, kPanelAlignment), values(heads * head_stride, kPanelAlignment);
  Panels q(kPanelRows, width), out(kPanelRows, width);
  Guarded<int32_t> lengths(kPanelRows, AnyAlignment(random));
  std::vector<uint32_t> places(2 * slots);
  FillPlaces(slots, random.Bits() % 2 == 1, places.data());
  std::vector<std::vector<float>> texts;  // by lane, row-major q | k | v of its positions; only the last q is used
  const size_t least = random.Bits() % 2 ? 1 : random.Between(1, slots);
  for (size_t r = 0; r < kPanelRows; ++r) {
    const size_t length = random.Between(least, slots);
    lengths[r] = static_cast<int32_t>(length);
    texts.push_back(RandomTable(random, length, shape));
    for (size_t t = 0; t < length; ++t) {
      const size_t place = places[newest + slots - (length - 1 - t)];
      for (size_t f = 0; f < width; ++f) {
        const size_t at = f / size * head_stride + (place * size + f % size) * kPanelRows + r;
        keys[at] = texts[r][t * 3 * width + width + f];
        values[at] = texts[r][t * 3 * width + 2 * width + f];
        if (t + 1 == length) q.at(r, f) = texts[r][t * 3 * width + f];
      }
    }
  }
  Guarded<float> scratch(
      kPanelRows * static_cast<size_t>(*std::max_element(lengths.data(), lengths.data() + kPanelRows)),
      kPanelAlignment);
  const DecodeCache cache{keys.data(), values.data(), head_stride, slots, newest, places.data()};
  DecodeAttention(q.data(), cache, lengths.data(), heads, size, out.data(), scratch.data());
  for (size_t r = 0; r < kPanelRows; ++r) {
    const size_t length = static_cast<size_t>(lengths[r]);
    const std::vector<double> table = ToDoubles(texts[r]);
    ComparePosition(
        table, length - 1, heads, size, [&](size_t f) { return static_cast<double>(out.at(r, f)); }, nullptr, outcome);
    // Prefill gives the same bits.
    Panels qkv(texts[r], length, 3 * width), causal(length, width);
    Guarded<float> causal_scratch(PanelFloats(length, kPanelRows), kPanelAlignment);
    CausalAttention(qkv.data(), length, (length - 1) / kPanelRows, heads, size, causal.data(), nullptr,
                    causal_scratch.data());
    for (size_t f = 0; f < width; ++f) {
      outcome.RequireSameBits(out.at(r, f), causal.at(length - 1, f), "decoding gives other bits than prefill");
      outcome.Record(out.at(r, f));
    }
  }
  outcome.Require(out.Intact() && scratch.Intact() && keys.Intact() && values.Intact(), "wrote outside");
  CheckPairedCache(q, cache, lengths.data(), heads, size, outcome);
  return outcome;
}

}  // namespace octavo::check
