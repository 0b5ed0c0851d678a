// Vector body of sampling; see sample.h. Everything is vertical: ids are held as floats (exact below 2^24), dropped ids have p = -1.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_SAMPLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_SAMPLE_INL_H_
#undef OCTAVO_KERNELS_SAMPLE_INL_H_
#else
#define OCTAVO_KERNELS_SAMPLE_INL_H_
#endif

#include "kernels/math-inl.h"
#include "kernels/sample.h"
#include "kernels/tile-inl.h"
#include "kernels/top_p-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

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
