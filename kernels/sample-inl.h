// Vector body of sampling; see sample.h. Everything is vertical: ids are held as floats (exact below 2^24), dropped ids have p = -1.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_SAMPLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_SAMPLE_INL_H_
#undef OCTAVO_KERNELS_SAMPLE_INL_H_
#else
#define OCTAVO_KERNELS_SAMPLE_INL_H_
#endif

#include <cmath>

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

// Drops all but the smallest set that reaches top_p of the kept total: takes the largest p again and again, ties to the lowest id.
HWY_NOINLINE void ApplyTopP(size_t count, const float* top_p, float* p) {
  const DF d;
  const VF share = hn::LoadU(d, top_p);
  const VF enough = hn::Mul(share, KeptTotal(p, count));
  // What was taken last; the next is the largest behind it in the order. Lanes with top_p = 1 are done before they begin.
  VF last = hn::Set(d, HUGE_VALF), last_id = hn::Set(d, -1.0f), sum = hn::Zero(d);
  auto done = hn::Ge(share, hn::Set(d, 1.0f));
  while (!hn::AllTrue(d, done)) {
    VF next = hn::Set(d, -1.0f), next_id = hn::Zero(d);
    for (size_t i = 0; i < count; ++i) {
      const VF candidate = hn::Load(d, p + i * kPanelRows);
      const auto behind =
          hn::Or(hn::Lt(candidate, last), hn::And(hn::Eq(candidate, last), hn::Gt(IdVector(i), last_id)));
      const auto better = hn::And(behind, hn::Gt(candidate, next));
      next = hn::IfThenElse(better, candidate, next);
      next_id = hn::IfThenElse(better, IdVector(i), next_id);
    }
    // No candidate left: all kept ids are taken. NaN compares false and ends here too.
    const auto none = hn::Not(hn::Ge(next, hn::Zero(d)));
    done = hn::Or(done, none);
    last = hn::IfThenElse(done, last, next);
    last_id = hn::IfThenElse(done, last_id, next_id);
    sum = hn::IfThenElse(done, sum, hn::Add(sum, next));
    done = hn::Or(done, hn::Ge(sum, enough));
  }
  const auto off = hn::Ge(share, hn::Set(d, 1.0f));
  for (size_t i = 0; i < count; ++i) {
    float* at = p + i * kPanelRows;
    const VF here = hn::Load(d, at);
    const auto taken = hn::Or(hn::Gt(here, last), hn::And(hn::Eq(here, last), hn::Le(IdVector(i), last_id)));
    hn::Store(hn::IfThenElse(hn::Or(off, taken), here, hn::Set(d, -1.0f)), d, at);
  }
}

// The first kept id whose running sum exceeds uniform · total, else the last kept one.
HWY_INLINE VF DrawKept(const float* p, size_t count, VF uniform) {
  const DF d;
  const VF threshold = hn::Mul(uniform, KeptTotal(p, count));
  VF sum = hn::Zero(d), id = hn::Zero(d);
  auto found = hn::Lt(sum, sum);
  for (size_t i = 0; i < count; ++i) {
    const VF here = hn::Load(d, p + i * kPanelRows);
    const auto kept = hn::Ge(here, hn::Zero(d));
    sum = hn::Add(sum, hn::Max(here, hn::Zero(d)));
    const auto take = hn::AndNot(found, kept);
    id = hn::IfThenElse(take, IdVector(i), id);
    found = hn::Or(found, hn::And(take, hn::Gt(sum, threshold)));
  }
  return id;
}

// The same when nothing is cut: running sums never fall, so the id is the number of them that do not exceed the threshold.
// `sums` holds the running sums.
HWY_INLINE VF DrawAll(const float* sums, size_t count, VF uniform) {
  const DF d;
  const VF threshold = hn::Mul(uniform, hn::Load(d, sums + (count - 1) * kPanelRows));
  const VF id = FoldInAnyOrder(
      count, hn::Zero(d),
      [&](size_t i) HWY_ATTR {
        return hn::IfThenElseZero(hn::Le(hn::Load(d, sums + i * kPanelRows), threshold), hn::Set(d, 1.0f));
      },
      [](VF a, VF b) HWY_ATTR { return hn::Add(a, b); });
  return hn::Min(id, IdVector(count - 1));
}

// p[i] = exp((logits[i] - best) / temperature), or, where kSums, the running sums of that.
template <bool kDivide, bool kSums>
HWY_INLINE void Exponentials(const float* logits, size_t count, VF best, VF temperature, float* p) {
  const DF d;
  VF sum = hn::Zero(d);
  const auto argument = [&](size_t i) HWY_ATTR {
    const VF x = hn::Sub(hn::Load(d, logits + i * kPanelRows), best);
    return kDivide ? hn::Div(x, temperature) : x;
  };
  ForEachExp(d, count, argument, [&](size_t i, VF value) HWY_ATTR {
    if constexpr (kSums) value = sum = hn::Add(sum, value);
    hn::Store(value, d, p + i * kPanelRows);
  });
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
    VF id;
    if (any_top_k || any_top_p) {
      divide ? Exponentials<true, false>(x, count, best, temperature, p)
             : Exponentials<false, false>(x, count, best, one, p);
      if (any_top_k) ApplyTopK(x, count, request.top_k + v, p);
      if (any_top_p) ApplyTopP(count, request.top_p + v, p);
      id = DrawKept(p, count, uniform);
    } else {
      divide ? Exponentials<true, true>(x, count, best, temperature, p)
             : Exponentials<false, true>(x, count, best, one, p);
      id = DrawAll(p, count, uniform);
    }
    if (!hn::AllFalse(d, greedy)) id = hn::IfThenElse(greedy, IdOf(x, count, best), id);
    hn::StoreU(hn::ConvertTo(di, id), di, ids + v);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_SAMPLE_INL_H_
