// Elementary functions on vectors of float, in correctly rounded operations only (+ − × ÷ √ fma, shifts, selects), so that every target with
// fused multiply-add gives the same bits. Out of scope: double, errno, rounding modes.
// Errors against double: kernels/math_bounds.h. Polynomials are minimax fits (weighted least squares iterated to the minimax, then
// rounded to float), their own error stated beside them.

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

// Min(limit, x) and Max(limit, x) that return x where it is NaN or equal to the limit (-0 against 0). x86 instructions return their second
// operand then; other targets drop the NaN.
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
  // exp(r) = 1 + r·(1 + r·q(r)), relative error 1.1e-7 for |r| ≤ ln 2 / 2.
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(hn::Set(d, 0x1.0edb8ap-7f), r[i], hn::Set(d, 0x1.573d16p-5f)); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(q[i], r[i], hn::Set(d, 0x1.555ce8p-3f)); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(q[i], r[i], hn::Set(d, 0x1.fffdbep-2f)); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(q[i], r[i], hn::Set(d, 0x1.ffffeep-1f)); });
  each([&](size_t i) HWY_ATTR { q[i] = hn::MulAdd(q[i], r[i], hn::Set(d, 1.0f)); });
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

// exp(x) for any x: 0 below -87.3, exp(88.7) = 3.3e38 above 88.7.
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
  const V n = hn::ConvertTo(d, e);
  // log(1 + f) = f - f²/2 + f³ p(f), relative error 6e-9.
  V p = hn::MulAdd(hn::Set(d, -0x1.38b4ecp-4f), f, hn::Set(d, 0x1.056582p-3f));
  p = hn::MulAdd(p, f, hn::Set(d, -0x1.0d8a08p-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.22d918p-3f));
  p = hn::MulAdd(p, f, hn::Set(d, -0x1.5471b6p-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.99a00ep-3f));
  p = hn::MulAdd(p, f, hn::Set(d, -0x1.000228p-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.555554p-2f));
  const V f2 = hn::Mul(f, f);
  p = hn::MulAdd(p, f, hn::Set(d, -0.5f));
  // ln 2 = 0x1.62ep-1 + lo: n · hi is exact. The small terms are added first.
  V small = hn::MulAdd(n, hn::Set(d, 0x1.0bfbe8p-15f), hn::Mul(p, f2));
  small = hn::Add(small, f);
  const V log = hn::MulAdd(n, hn::Set(d, 0x1.62ep-1f), small);
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
// polynomial p with a root where q has become negligible, at which |x| is clamped: no exponential and no division.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluErf(D d, V x) {
  const V a = MinKeepNaN(d, 5.75f, hn::Abs(x));
  V p = hn::MulAdd(hn::Set(d, -0x1.b93a92p-19f), a, hn::Set(d, 0x1.ddbbf2p-15f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.3a6dc4p-12f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.ce4d28p-15f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.f53a14p-9f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.2f4eaap-8f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.9b27bap-5f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.578580p-3f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.ae89fap-1f));
  p = hn::Mul(p, p);
  return hn::NegMulAdd(hn::Mul(p, p), a, Relu(d, x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluTanh(D d, V x) {
  const V a = MinKeepNaN(d, 5.5f, hn::Abs(x));
  V p = hn::MulAdd(hn::Set(d, 0x1.a43d44p-20f), a, hn::Set(d, -0x1.fb6d16p-16f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.df31aap-13f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.9ad602p-11f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.14ab2ap-11f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.c16974p-9f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.45b18ep-8f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.9b8230p-5f));
  p = hn::MulAdd(p, a, hn::Set(d, -0x1.5783a4p-3f));
  p = hn::MulAdd(p, a, hn::Set(d, 0x1.ae89fap-1f));
  p = hn::Mul(p, p);
  return hn::NegMulAdd(hn::Mul(p, p), a, Relu(d, x));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_MATH_INL_H_
