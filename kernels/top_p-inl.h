// Which p top-p keeps, for sample-inl.h: a range of p is narrowed down lane by lane of a vector; only where sums in any order cannot tell the set
// apart from that of the specification is a lane sorted. Layout: p[16·i + r] of id i and lane r, -1 where top-k has dropped it.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_TOP_P_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_TOP_P_INL_H_
#undef OCTAVO_KERNELS_TOP_P_INL_H_
#else
#define OCTAVO_KERNELS_TOP_P_INL_H_
#endif

#include <cstring>

#include "kernels/math-inl.h"
#include "kernels/panel.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

using DI = hn::RebindToSigned<DF>;
using VI = hn::Vec<DI>;

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

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_TOP_P_INL_H_
