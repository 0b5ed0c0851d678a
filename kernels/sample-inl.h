// Vector body of sampling; see sample.h. Everything is vertical: ids are held as floats (exact below 2^24), dropped ids have p = -1.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_SAMPLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_SAMPLE_INL_H_
#undef OCTAVO_KERNELS_SAMPLE_INL_H_
#else
#define OCTAVO_KERNELS_SAMPLE_INL_H_
#endif

#include <cstring>

#include "kernels/math-inl.h"
#include "kernels/sample.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

using DI = hn::RebindToSigned<DF>;
using VI = hn::Vec<DI>;

HWY_INLINE VF IdVector(size_t i) { return hn::Set(DF(), static_cast<float>(i)); }

// The lowest id whose logit is `best`; the last id where none is (NaN).
HWY_INLINE VF IdOf(const float* logits, size_t count, VF best) {
  const DF d;
  const VF last = IdVector(count - 1);
  return FoldInAnyOrder(
      count, last,
      [&](size_t i)
          HWY_ATTR { return hn::IfThenElse(hn::Eq(hn::Load(d, logits + i * kPanelRows), best), IdVector(i), last); },
      [](VF a, VF b) HWY_ATTR { return hn::Min(a, b); });
}

// Logits as integers of the same order; both zeros are one.
HWY_INLINE VI OrderedBits(VF logit) {
  const DI di;
  const VI bits = hn::BitCast(di, hn::Add(logit, hn::Zero(DF())));
  return hn::Xor(bits, hn::And(hn::ShiftRight<31>(bits), hn::Set(di, 0x7FFFFFFF)));
}

// Ids of which `key ≥ least`.
HWY_INLINE VI CountAtLeast(const float* logits, size_t count, VI least) {
  const DF d;
  const DI di;
  VI n = hn::Set(di, static_cast<int32_t>(count));
  for (size_t i = 0; i < count; ++i) {
    const auto below = hn::Lt(OrderedBits(hn::Load(d, logits + i * kPanelRows)), least);
    n = hn::Add(n, hn::VecFromMask(di, below));
  }
  return n;
}

// Drops from p all but the k largest logits of each lane, ties to the lowest id. The k-th largest is found bit by bit.
HWY_NOINLINE void ApplyTopK(const float* logits, size_t count, const int32_t* top_k, float* p) {
  const DF d;
  const DI di;
  HWY_ALIGN int32_t wanted[kPanelRows];
  const int32_t all = static_cast<int32_t>(count);
  for (size_t r = 0; r < kLanes; ++r) wanted[r] = top_k[r] > 0 && top_k[r] < all ? top_k[r] : all;
  const VI k = hn::Load(di, wanted);
  VI kth = hn::Set(di, INT32_MIN);
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    const VI higher = hn::Add(kth, hn::Set(di, static_cast<int32_t>(bit)));
    kth = hn::IfThenElse(hn::Lt(CountAtLeast(logits, count, higher), k), kth, higher);
  }
  // Of those equal to the k-th, as many of the lowest ids as are left. No key is INT32_MAX, so kth + 1 does not wrap.
  VI left = hn::Sub(k, CountAtLeast(logits, count, hn::Add(kth, hn::Set(di, 1))));
  for (size_t i = 0; i < count; ++i) {
    const VI key = OrderedBits(hn::Load(d, logits + i * kPanelRows));
    const auto tie = hn::And(hn::Eq(key, kth), hn::Gt(left, hn::Zero(di)));
    left = hn::Add(left, hn::VecFromMask(di, tie));
    const auto keep = hn::Or(hn::Gt(key, kth), tie);
    float* at = p + i * kPanelRows;
    hn::Store(hn::IfThenElse(hn::RebindMask(d, keep), hn::Load(d, at), hn::Set(d, -1.0f)), d, at);
  }
}

// Σ of the kept p in id order.
HWY_INLINE VF KeptTotal(const float* p, size_t count) {
  const DF d;
  VF total = hn::Zero(d);
  for (size_t i = 0; i < count; ++i) total = hn::Add(total, hn::Max(hn::Load(d, p + i * kPanelRows), hn::Zero(d)));
  return total;
}

// How far below 1 a number of [0, 1] lies, counted in floats: falling numbers have rising keys.
HWY_INLINE uint32_t SortKey(float x) {
  constexpr uint32_t kOne = 0x3F800000;
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return kOne - bits;
}

// Sorts numbers of [0, 1], falling, by digits of their keys from the last to the first, as many as the largest key has; `other` has as much room.
// Returns where they are then.
HWY_INLINE float* SortFalling(float* values, float* other, size_t count) {
  constexpr uint32_t kBits = 10, kDigits = 1 << kBits;
  uint32_t all = 0;
  for (size_t i = 0; i < count; ++i) all |= SortKey(values[i]);
  for (uint32_t shift = 0; shift < 32 && all >> shift != 0; shift += kBits) {
    uint32_t begin[kDigits] = {};
    for (size_t i = 0; i < count; ++i) ++begin[(SortKey(values[i]) >> shift) % kDigits];
    uint32_t sum = 0;
    for (uint32_t& at : begin) {
      const uint32_t size = at;
      at = sum;
      sum += size;
    }
    for (size_t i = 0; i < count; ++i) other[begin[(SortKey(values[i]) >> shift) % kDigits]++] = values[i];
    float* const sorted = other;
    other = values;
    values = sorted;
  }
  return values;
}

// What top-p keeps of the lanes of a vector: every p above `least`, and of those equal to it the `ties` lowest ids.
struct Nuclei {
  HWY_ALIGN float least[kLanes];
  HWY_ALIGN int32_t ties[kLanes];
};

// How many lanes are sorted side by side, so that each line of p is read for several, and sums need not wait for each other.
constexpr size_t kSortLanes = 4;

// By the specification, for lanes[0 … num_lanes - 1], at most kSortLanes: sorts the p of each and sums them in that order. Before, nuclei.least is
// what no p of the nucleus lies below. `spare` holds (kSortLanes + 1) · count floats.
HWY_NOINLINE void SortNuclei(const float* p, size_t count, const size_t* lanes, size_t num_lanes, const float* enough,
                             float* spare, Nuclei& nuclei) {
  size_t kept[kSortLanes] = {};
  for (size_t i = 0; i < count; ++i) {
    for (size_t n = 0; n < num_lanes; ++n) {
      const float value = p[i * kPanelRows + lanes[n]];
      spare[n * count + kept[n]] = value;
      kept[n] += value >= nuclei.least[lanes[n]];
    }
  }
  const float* sorted[kSortLanes] = {};
  float* free = spare + kSortLanes * count;
  for (size_t n = 0; n < num_lanes; ++n) {
    float* const values = spare + n * count;
    sorted[n] = SortFalling(values, free, kept[n]);
    if (sorted[n] == free) free = values;
  }
  // How many of each are summed until that is enough: whole blocks side by side, then one by one.
  constexpr size_t kBlock = 32;
  size_t whole = kept[0];
  for (size_t n = 1; n < num_lanes; ++n) whole = whole < kept[n] ? whole : kept[n];
  float sum[kSortLanes] = {};
  size_t at = 0;
  for (bool goes_on = true; goes_on && at + kBlock <= whole; at += goes_on ? kBlock : 0) {
    float next[kSortLanes];
    std::memcpy(next, sum, sizeof(next));
    for (size_t i = at; i < at + kBlock; ++i) {
      for (size_t n = 0; n < num_lanes; ++n) next[n] += sorted[n][i];
    }
    for (size_t n = 0; n < num_lanes; ++n) goes_on &= next[n] < enough[lanes[n]];
    if (goes_on) std::memcpy(sum, next, sizeof(next));
  }
  size_t taken[kSortLanes];
  for (size_t n = 0; n < num_lanes; ++n) {
    for (taken[n] = at; taken[n] < kept[n];) {
      sum[n] += sorted[n][taken[n]++];
      if (sum[n] >= enough[lanes[n]]) break;
    }
  }
  for (size_t n = 0; n < num_lanes; ++n) {
    float& least = nuclei.least[lanes[n]];
    int32_t& ties = nuclei.ties[lanes[n]];
    least = 0;
    ties = 0;
    if (taken[n] == 0) continue;  // NaN
    least = sorted[n][taken[n] - 1];
    for (size_t i = taken[n]; i > 0 && sorted[n][i - 1] == least; --i) ++ties;
  }
}

// Σ of p ≥ least, in any order.
HWY_INLINE VF SumFrom(const float* p, size_t count, VF least) {
  const DF d;
  return FoldInAnyOrder(
      count, hn::Zero(d),
      [&](size_t i) HWY_ATTR {
        const VF here = hn::Load(d, p + i * kPanelRows);
        return hn::IfThenElseZero(hn::Ge(here, least), here);
      },
      [](VF a, VF b) HWY_ATTR { return hn::Add(a, b); });
}

// A range of p: the sum of all from `low` on is enough, that from `high` on is not, by sums in any order.
struct Range {
  VF low, high;
};

// Halves the range of bits that the least kept p lies in until some few of them are left.
HWY_INLINE Range NarrowRange(const float* p, size_t count, VF total, VF enough) {
  const DF d;
  const DI di;
  // What is below a count-th of what may be dropped cannot reach that all together.
  const VF small = hn::Mul(hn::Sub(total, enough), hn::Set(d, 0.5f / static_cast<float>(count)));
  VI low = hn::BitCast(di, hn::Max(small, hn::Zero(d)));
  VI high = hn::BitCast(di, hn::Set(d, 1.5f));  // 1 is the largest
  constexpr size_t kMostHalvings = 7;
  for (size_t elements = count, n = 0; elements > 1 && n < kMostHalvings; elements /= 2, ++n) {
    const VI middle = hn::Add(low, hn::ShiftRight<1>(hn::Sub(high, low)));
    const auto reached = hn::RebindMask(di, hn::Ge(SumFrom(p, count, hn::BitCast(d, middle)), enough));
    low = hn::IfThenElse(reached, middle, low);
    high = hn::IfThenElse(reached, high, middle);
  }
  return {hn::BitCast(d, low), hn::BitCast(d, high)};
}

// Finds the least p of each lane's nucleus among those of the range, where sums in any order can tell; returns a bit for each lane where they can.
// A sum of n numbers one after another is off by at most n · 2^-24 of itself, one in four chains by a quarter of that. For other lanes
// nuclei.least is what no p of the nucleus lies below.
HWY_INLINE uint32_t NucleiIn(const Range& range, const float* p, size_t count, const float* enough, Nuclei& nuclei) {
  const DF d;
  constexpr size_t kRoom = 32;
  float inside[kLanes][kRoom];
  size_t num_inside[kLanes] = {};
  VF sum_above = hn::Zero(d), num_above = hn::Zero(d);
  const VF one = hn::Set(d, 1.0f);
  HWY_ALIGN float values[kLanes];
  for (size_t i = 0; i < count; ++i) {
    const VF here = hn::Load(d, p + i * kPanelRows);
    const auto from_low = hn::Ge(here, range.low), from_high = hn::Ge(here, range.high);
    sum_above = hn::Add(sum_above, hn::IfThenElseZero(from_high, here));
    num_above = hn::Add(num_above, hn::IfThenElseZero(from_high, one));
    const auto within = hn::AndNot(from_high, from_low);
    if (hn::AllFalse(d, within)) continue;
    hn::Store(hn::IfThenElse(within, here, hn::Set(d, -1.0f)), d, values);
    for (size_t r = 0; r < kLanes; ++r) {
      inside[r][num_inside[r] < kRoom ? num_inside[r] : kRoom - 1] = values[r];
      num_inside[r] += values[r] >= 0;
    }
  }
  HWY_ALIGN float sums[kLanes], counts[kLanes], low[kLanes];
  hn::Store(range.low, d, low);
  hn::Store(sum_above, d, sums);
  hn::Store(num_above, d, counts);
  uint32_t known = 0;
  for (size_t r = 0; r < kLanes; ++r) {
    nuclei.least[r] = nuclei.ties[r] = 0;
    if (num_inside[r] >= kRoom) continue;
    // From the largest on, each taken out, until the sum is enough.
    float sum = sums[r], before = sum, least = -1;
    size_t left = num_inside[r];
    float taken = counts[r];
    bool is_tie = false;
    while (left > 0 && sum < enough[r]) {
      size_t largest = 0;
      for (size_t i = 1; i < left; ++i) largest = inside[r][i] > inside[r][largest] ? i : largest;
      is_tie = inside[r][largest] == least;
      least = inside[r][largest];
      inside[r][largest] = inside[r][--left];
      before = sum;
      sum += least;
      ++taken;
    }
    for (size_t i = 0; i < left; ++i) is_tie |= inside[r][i] == least;
    const float doubt = 1.25f * 0x1p-24f * (taken + 8) * sum;
    if (!(sum - enough[r] > doubt)) {
      // Perhaps all of the range are.
      for (size_t i = 0; i < left; ++i) sum += inside[r][i];
      if (sum - enough[r] > doubt + 1.25f * 0x1p-24f * kRoom * sum) nuclei.least[r] = low[r];
      continue;
    }
    nuclei.least[r] = least;
    if (is_tie || !(enough[r] - before > doubt)) continue;
    known |= uint32_t{1} << r;
    nuclei.ties[r] = 1;
  }
  return known;
}

// Finds the smallest set that reaches top_p of `total`, the sum of the kept p, taken by falling p, then rising id, and summed in that order. It is
// known without sorting where rounding decides nothing and no other p equals the least one; elsewhere the lane is sorted. `spare` holds
// (kSortLanes + 1) · count floats. Returns whether several p may equal the least one of a lane.
HWY_NOINLINE bool FindNuclei(size_t count, const float* top_p, VF total, const float* p, float* spare, Nuclei& nuclei) {
  const DF d;
  const VF share = hn::LoadU(d, top_p), enough = hn::Mul(share, total);
  HWY_ALIGN float enoughs[kLanes];
  hn::Store(enough, d, enoughs);
  const uint32_t known = NucleiIn(NarrowRange(p, count, total, enough), p, count, enoughs, nuclei);
  size_t lanes[kSortLanes], num_lanes = 0;
  bool any_sorted = false;
  for (size_t r = 0; r < kLanes; ++r) {
    if (top_p[r] >= 1) {
      nuclei.least[r] = 0;  // all that top-k keeps
      nuclei.ties[r] = INT32_MAX;
    } else if ((known >> r & 1) == 0) {
      lanes[num_lanes++] = r;
    }
    if (num_lanes < kSortLanes && r + 1 < kLanes) continue;
    if (num_lanes > 0) SortNuclei(p, count, lanes, num_lanes, enoughs, spare, nuclei);
    any_sorted |= num_lanes > 0;
    num_lanes = 0;
  }
  return any_sorted;
}

// What SumKept keeps of p ≥ 0: all, those from the least one of the nucleus on, or as many of those equal to it as the nucleus has.
enum class Kept { kAll, kFromLeast, kWithTies };

// Running sums of what is kept, in id order, instead of p; returns the last kept id.
template <Kept kKept>
HWY_INLINE VF SumKept(size_t count, const Nuclei& nuclei, float* p) {
  const DF d;
  const DI di;
  VF least = hn::Zero(d), sum = hn::Zero(d), last = hn::Zero(d);
  VI left = hn::Zero(di);
  if constexpr (kKept != Kept::kAll) least = hn::Max(hn::Load(d, nuclei.least), least);
  if constexpr (kKept == Kept::kWithTies) left = hn::Load(di, nuclei.ties);
  for (size_t i = 0; i < count; ++i) {
    float* at = p + i * kPanelRows;
    const VF here = hn::Load(d, at);
    auto keep = hn::Ge(here, least);
    if constexpr (kKept == Kept::kWithTies) {
      const auto tie = hn::And(hn::RebindMask(di, hn::Eq(here, least)), hn::Gt(left, hn::Zero(di)));
      left = hn::Add(left, hn::VecFromMask(di, tie));
      keep = hn::Or(hn::Gt(here, least), hn::RebindMask(d, tie));
    }
    sum = hn::Add(sum, hn::IfThenElseZero(keep, here));
    last = hn::IfThenElse(keep, IdVector(i), last);
    hn::Store(sum, d, at);
  }
  return last;
}

// The first id whose running sum exceeds uniform · total, else `last`. Running sums never fall, so it is the number of those that do not exceed it.
HWY_INLINE VF DrawFrom(const float* sums, size_t count, VF last, VF uniform) {
  const DF d;
  const VF threshold = hn::Mul(uniform, hn::Load(d, sums + (count - 1) * kPanelRows));
  const VF id = FoldInAnyOrder(
      count, hn::Zero(d),
      [&](size_t i) HWY_ATTR {
        return hn::IfThenElseZero(hn::Le(hn::Load(d, sums + i * kPanelRows), threshold), hn::Set(d, 1.0f));
      },
      [](VF a, VF b) HWY_ATTR { return hn::Add(a, b); });
  return hn::Min(id, last);
}

// p[i] = exp((logits[i] - best) / temperature), or, where kSums, the running sums of that. Returns the sum of all.
template <bool kDivide, bool kSums>
HWY_INLINE VF Exponentials(const float* logits, size_t count, VF best, VF temperature, float* p) {
  const DF d;
  VF sum = hn::Zero(d);
  const auto argument = [&](size_t i) HWY_ATTR {
    const VF x = hn::Sub(hn::Load(d, logits + i * kPanelRows), best);
    return kDivide ? hn::Div(x, temperature) : x;
  };
  ForEachExp(d, count, argument, [&](size_t i, VF value) HWY_ATTR {
    sum = hn::Add(sum, value);
    hn::Store(kSums ? sum : value, d, p + i * kPanelRows);
  });
  return sum;
}

HWY_NOINLINE void Sample(const float* logits, size_t count, const SampleRequest& request, float* scratch,
                         int32_t* ids) {
  const DF d;
  const DI di;
  const VF one = hn::Set(d, 1.0f);
  for (size_t v = 0; v < kPanelRows; v += kLanes) {
    const float* x = logits + v;
    float* p = scratch + v;
    const VF best = LargestOf(d, x, count, kPanelRows);
    const VF given = hn::LoadU(d, request.temperature + v);
    const auto greedy = hn::Lt(given, hn::Set(d, 0x1p-126f));
    const VF temperature = hn::IfThenElse(greedy, one, given);
    bool any_top_k = false;
    for (size_t r = v; r < v + kLanes; ++r) {
      any_top_k |= request.top_k[r] > 0 && static_cast<size_t>(request.top_k[r]) < count;
    }
    const bool any_top_p = !hn::AllTrue(d, hn::Ge(hn::LoadU(d, request.top_p + v), one));
    const bool divide = !hn::AllTrue(d, hn::Eq(temperature, one));  // x / 1 is x
    const VF uniform = hn::LoadU(d, request.uniform + v);
    VF last = IdVector(count - 1);
    if (any_top_k || any_top_p) {
      VF total = divide ? Exponentials<true, false>(x, count, best, temperature, p)
                        : Exponentials<false, false>(x, count, best, one, p);
      if (any_top_k) {
        ApplyTopK(x, count, request.top_k + v, p);
        total = KeptTotal(p, count);
      }
      Nuclei nuclei;
      if (!any_top_p) {
        last = SumKept<Kept::kAll>(count, nuclei, p);
      } else if (FindNuclei(count, request.top_p + v, total, p, scratch + kPanelRows * count, nuclei)) {
        last = SumKept<Kept::kWithTies>(count, nuclei, p);
      } else {
        last = SumKept<Kept::kFromLeast>(count, nuclei, p);
      }
    } else {
      divide ? Exponentials<true, true>(x, count, best, temperature, p)
             : Exponentials<false, true>(x, count, best, one, p);
    }
    VF id = DrawFrom(p, count, last, uniform);
    if (!hn::AllFalse(d, greedy)) id = hn::IfThenElse(greedy, IdOf(x, count, best), id);
    hn::StoreU(hn::ConvertTo(di, id), di, ids + v);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_SAMPLE_INL_H_
