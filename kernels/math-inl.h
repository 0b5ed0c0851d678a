// Elementary functions on vectors of float, in correctly rounded operations only (+ − × ÷ √ fma, shifts, selects), so that every target with
// fused multiply-add gives the same bits. Out of scope: double, errno, rounding modes.
// Errors against double: kernels/math_bounds.h, tests/math_test.cc. Polynomials are weighted minimax fits (least squares iterated), rounded to
// float and then improved by a local search over their last bits against the measured error, with and without fused multiply-add.

// Per-target include guard.
#if defined(OCTAVO_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_KERNELS_MATH_INL_H_
#undef OCTAVO_KERNELS_MATH_INL_H_
#else
#define OCTAVO_KERNELS_MATH_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Min(limit, x) and Max(limit, x) that return x where it is NaN or equal to the limit (-0 against 0). The x86 instructions return their
// second operand then; other targets drop the NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V MinKeepNaN(D d, float limit, V x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Min(hn::Set(d, limit), x);
#else
  return hn::IfThenElse(hn::Lt(hn::Set(d, limit), x), hn::Set(d, limit), x);
#endif
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V MaxKeepNaN(D d, float limit, V x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Max(hn::Set(d, limit), x);
#else
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, limit)), hn::Set(d, limit), x);
#endif
}

// exp(x) without regard to overflow and underflow: |x| ≤ 87.3. x = n·ln 2 + r; 2^n goes into the exponent by integer addition.
// n is rounded by adding 1.5·2^23, whose sum also holds n in its low bits: one operation where ConvertTo and back take three.
// Several vectors side by side, step by step: a chain of twelve dependent operations leaves most of the machine idle, four fill it.
template <size_t kCount, class D, class V = hn::Vec<D>>
HWY_INLINE void ExpCore(D d, V (&x)[kCount]) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, 0x1.8p23f);
  V shifted[kCount], r[kCount], q[kCount];
  const auto each = [](const auto& step) HWY_ATTR {
    OCTAVO_UNROLL
    for (size_t i = 0; i < kCount; ++i) step(i);
  };
  each([&](size_t i) HWY_ATTR { shifted[i] = hn::MulAdd(x[i], hn::Set(d, 0x1.715476p0f), magic); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::Sub(shifted[i], magic); });
  // ln 2 = 0x1.62ep-1 + lo: the first product is exact, n has at most 8 bits.
  each([&](size_t i) HWY_ATTR { r[i] = hn::NegMulAdd(q[i], hn::Set(d, 0x1.62ep-1f), x[i]); });
  each([&](size_t i) HWY_ATTR { r[i] = hn::NegMulAdd(q[i], hn::Set(d, 0x1.0bfbe8p-15f), r[i]); });
#if HWY_NATIVE_FMA
  // exp(r) = 1 + r·q(r) for |r| ≤ ln 2 / 2, fitted in ulps of the result (half as large for r < 0): at most 1.05. One degree more
  // gives 0.9 ulp for the whole instead of 1.9 and takes 11% (AVX2) to 17% (AVX-512) longer; a linear coefficient of exactly 1 gives 2.14.
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(hn::Set(d, 0x1.0ed2d8p-7f), r[i], hn::Set(d, 0x1.574d32p-5f)); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(q[i], r[i], hn::Set(d, 0x1.555d80p-3f)); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(q[i], r[i], hn::Set(d, 0x1.fffd88p-2f)); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(q[i], r[i], hn::Set(d, 0x1.ffffecp-1f)); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(q[i], r[i], hn::Set(d, 1.0f)); });
#else
  // Without it every step rounds twice, which that polynomial does not bear (2.07 ulp). 1 + r + r²·q(r), one degree more: 0.98.
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(hn::Set(d, 0x1.6a2430p-10f), r[i], hn::Set(d, 0x1.1239e0p-7f)); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(q[i], r[i], hn::Set(d, 0x1.5558f2p-5f)); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(q[i], r[i], hn::Set(d, 0x1.555492p-3f)); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(q[i], r[i], hn::Set(d, 0x1.fffffcp-2f)); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(q[i], hn::Mul(r[i], r[i]), r[i]); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::Add(q[i], hn::Set(d, 1.0f)); });
#endif
  each([&](size_t i) HWY_ATTR {
    x[i] = hn::BitCast(d, hn::Add(hn::BitCast(di, q[i]), hn::ShiftLeft<23>(hn::BitCast(di, shifted[i]))));
  });
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpCore(D d, V x) {
  V one[1] = {x};
  ExpCore(d, one);
  return one[0];
}

// exp(x) for x ≤ 0: 0 below -87.3 (ln of the smallest normal float). For softmax, whose arguments have the largest subtracted.
template <size_t kCount, class D, class V = hn::Vec<D>>
HWY_INLINE void ExpNonPositive(D d, V (&x)[kCount]) {
  hn::Mask<D> zero[kCount];
  OCTAVO_UNROLL
  for (size_t i = 0; i < kCount; ++i) zero[i] = hn::Lt(x[i], hn::Set(d, -87.3f));
  ExpCore(d, x);
  OCTAVO_UNROLL
  for (size_t i = 0; i < kCount; ++i) x[i] = hn::IfThenZeroElse(zero[i], x[i]);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpNonPositive(D d, V x) {
  V one[1] = {x};
  ExpNonPositive(d, one);
  return one[0];
}

// join(join(identity, term(0)), term(1)) … for a join whose order does not matter, in four chains side by side.
template <class V, class Term, class Join>
HWY_INLINE V FoldInAnyOrder(size_t count, V identity, const Term& term, const Join& join) {
  constexpr size_t kSide = 4;
  V chain[kSide] = {identity, identity, identity, identity};
  size_t i = 0;
  for (; i + kSide <= count; i += kSide) {
    OCTAVO_UNROLL
    for (size_t n = 0; n < kSide; ++n) chain[n] = join(chain[n], term(i + n));
  }
  for (; i < count; ++i) chain[0] = join(chain[0], term(i));
  return join(join(chain[0], chain[1]), join(chain[2], chain[3]));
}

// The largest of x[i·stride] for i < count, at least one, for each lane.
template <class D>
HWY_INLINE hn::Vec<D> LargestOf(D d, const float* x, size_t count, size_t stride) {
  using V = hn::Vec<D>;
  return FoldInAnyOrder(
      count, hn::Load(d, x), [&](size_t i) HWY_ATTR { return hn::Load(d, x + i * stride); },
      [](V a, V b) HWY_ATTR { return hn::Max(a, b); });
}

// Calls each(i, exp(argument(i))) for i = 0 … count - 1 in this order, arguments ≤ 0, four side by side.
template <class D, class Argument, class Each>
HWY_INLINE void ForEachExp(D d, size_t count, const Argument& argument, const Each& each) {
  constexpr size_t kSide = 4;
  size_t i = 0;
  for (; i + kSide <= count; i += kSide) {
    hn::Vec<D> e[kSide];
    OCTAVO_UNROLL
    for (size_t n = 0; n < kSide; ++n) e[n] = argument(i + n);
    ExpNonPositive(d, e);
    OCTAVO_UNROLL
    for (size_t n = 0; n < kSide; ++n) each(i + n, e[n]);
  }
  for (; i < count; ++i) each(i, ExpNonPositive(d, argument(i)));
}

// exp(x) for any x: 0 below -87.3, exp(88.7) = 3.3e38 above 88.7. NaN stays NaN when its low nine bits are zero, as those of every NaN that
// arithmetic makes (they are shifted into the exponent).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  return ExpNonPositive(d, MinKeepNaN(d, 88.7f, x));
}

// log(x) for x > 0; +inf gives +inf, NaN stays NaN. Below the smallest normal float the result saturates: it falls from log(2^-126) = -87.34
// to -88.03 at 0, monotonic. x = 2^e · (1 + f), with 1 + f in [√½, √2).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  const auto e = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));  // the bits of √½
  const V f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(e))), hn::Set(d, 1.0f));
  // log(1 + f) = f + f² p(f), relative error 3e-8.
  V p = hn::MulAdd(hn::Set(d, 0x1.65c3bap-4f), f, hn::Set(d, -0x1.25109ep-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.318784p-3f));
  p = hn::MulAdd(p, f, hn::Set(d, -0x1.535c90p-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.98d24ap-3f));
  p = hn::MulAdd(p, f, hn::Set(d, -0x1.000498p-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.555700p-2f));
  p = hn::MulAdd(p, f, hn::Set(d, -0x1.fffffap-2f));
  p = hn::MulAdd(p, hn::Mul(f, f), f);
  // float(ln 2) is within 3e-9 of ln 2: one term is enough.
  const V log = hn::MulAdd(hn::ConvertTo(d, e), hn::Set(d, 0x1.62e430p-1f), p);
  return hn::IfThenElse(hn::Lt(x, hn::Inf(d)), log, x);
}

// tanh(x) for any x, odd; ±1 beyond ±9.02, NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V a = hn::Abs(x);
  // |x| ≤ 0.625: x + x³ p(x²), relative error 5e-9.
  const V x2 = hn::Mul(x, x);
  V p = hn::MulAdd(hn::Set(d, -0x1.75e1ccp-8f), x2, hn::Set(d, 0x1.52269ap-6f));
  p = hn::MulAdd(p, x2, hn::Set(d, -0x1.b83c5ap-5f));
  p = hn::MulAdd(p, x2, hn::Set(d, 0x1.110726p-3f));
  p = hn::MulAdd(p, x2, hn::Set(d, -0x1.555532p-2f));
  const V small = hn::MulAdd(hn::Mul(p, x2), a, a);
  // Beyond: 1 - 2 / (exp(2|x|) + 1).
  const V one = hn::Set(d, 1.0f);
  const V e = ExpCore(d, hn::Min(hn::Add(a, a), hn::Set(d, 20.0f)));
  const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
  return hn::CopySignToAbs(hn::IfThenElse(hn::Gt(a, hn::Set(d, 0.625f)), large, small), x);
}

// erf(x) for any x, odd; ±1 beyond ±3.92, NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Erf(D d, V x) {
  const V a = hn::Abs(x);
  // |x| ≤ 0.921875: x + x p(x²), relative error 4e-10.
  const V x2 = hn::Mul(x, x);
  V p = hn::MulAdd(hn::Set(d, 0x1.5f1144p-14f), x2, hn::Set(d, -0x1.aae986p-11f));
  p = hn::MulAdd(p, x2, hn::Set(d, 0x1.54dad8p-8f));
  p = hn::MulAdd(p, x2, hn::Set(d, -0x1.b8107cp-6f));
  p = hn::MulAdd(p, x2, hn::Set(d, 0x1.ce2e20p-4f));
  p = hn::MulAdd(p, x2, hn::Set(d, -0x1.812744p-2f));
  p = hn::MulAdd(p, x2, hn::Set(d, 0x1.06eba8p-3f));
  const V small = hn::MulAdd(p, a, a);
  // Beyond: 1 - exp(-a q(a)) up to a = 4, erf's absolute error 3e-9.
  const V b = hn::Min(a, hn::Set(d, 4.0f));
  V q = hn::MulAdd(hn::Set(d, 0x1.bfbef6p-13f), b, hn::Set(d, -0x1.a4d836p-9f));
  q = hn::MulAdd(q, b, hn::Set(d, 0x1.76d0b4p-6f));
  q = hn::MulAdd(q, b, hn::Set(d, -0x1.af1236p-4f));
  q = hn::MulAdd(q, b, hn::Set(d, -0x1.457ecap-1f));
  q = hn::MulAdd(q, b, hn::Set(d, -0x1.20e60ap0f));
  const V large = hn::Sub(hn::Set(d, 1.0f), ExpCore(d, hn::Mul(q, b)));
  return hn::CopySignToAbs(hn::IfThenElse(hn::Gt(a, hn::Set(d, 0.921875f)), large, small), x);
}

// max(x, 0); keeps -0 and NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Relu(D d, V x) {
  return MaxKeepNaN(d, 0.0f, x);
}

// Both GELUs are x · gate(x) with gate(-x) = 1 - gate(x), hence max(x, 0) - |x| · q(|x|) with q(a) = gate(-a). q is the fourth power of a
// polynomial p with a root at 5.75, where q < 5e-9 and |x| is clamped: no exponential, no division, and neither cancels more than GELU does.
// p(5.75) is exactly 0 in float, with fma and without (its constant is 23 · 613387 · 2^-24, and p's first step back from it is a float), so
// that beyond ±5.75 the result is exactly x or 0. Fitted to the absolute error of q: 1.3 · 2^-24 and 2.4 · 2^-24 before rounding.
// Cycles an element on Zen 5, GCC 12, AVX-512 / AVX2, exp being 0.33 / 0.65: GeluErf 0.34 / 0.72, GeluTanh 0.38 / 0.81. Slower for
// GeluTanh: x / (1 + 2^t) 0.47 / 0.95; one division of odd polynomials 0.40 / 0.86; a / p^8 0.41 / 0.84; two degrees more, for an error of
// 3 instead of 4.5, 0.50 / 1.00. Splitting p into even and odd parts gains nothing. Squares instead of fourth powers need one more degree.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluErf(D d, V x) {
  const V a = MinKeepNaN(d, 5.75f, hn::Abs(x));
  V p = hn::MulAdd(hn::Set(d, -0x1.b965fep-19f), a, hn::Set(d, 0x1.ddebfp-15f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.3a9808p-12f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.c97f5ep-15f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.f51318p-9f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.2f6526p-8f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.9b29a4p-5f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.57855ap-3f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.ae89fap-1f));
  p = hn::Mul(p, p);
  return hn::NegMulAdd(hn::Mul(p, p), a, Relu(d, x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluTanh(D d, V x) {
  const V a = MinKeepNaN(d, 5.75f, hn::Abs(x));
  V p = hn::MulAdd(hn::Set(d, 0x1.9acafap-20f), a, hn::Set(d, -0x1.f25142p-16f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.d7fd28p-13f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.94c6ep-11f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.08ee48p-11f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.c4b9ecp-9f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.44a466p-8f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.9b778ep-5f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.5783f8p-3f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.ae89fap-1f));
  p = hn::Mul(p, p);
  return hn::NegMulAdd(hn::Mul(p, p), a, Relu(d, x));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_MATH_INL_H_
