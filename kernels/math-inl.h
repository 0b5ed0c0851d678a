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

HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// exp(x) without regard to overflow and underflow: |x| ≤ 87.3. x = n·ln 2 + r; 2^n goes into the exponent by integer addition.
// n is rounded by adding 1.5·2^23, whose sum also holds n in its low bits: one operation where ConvertTo and back take three.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpCore(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, 0x1.8p23f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 0x1.715476p0f), magic);
  const V n = hn::Sub(shifted, magic);
  // ln 2 = 0x1.62ep-1 + lo: the first product is exact, n has at most 8 bits.
  V r = hn::NegMulAdd(n, hn::Set(d, 0x1.62ep-1f), x);
  r = hn::NegMulAdd(n, hn::Set(d, 0x1.0bfbe8p-15f), r);
  // exp(r) = 1 + r·(1 + r·q(r)), relative error 1.1e-7 for |r| ≤ ln 2 / 2.
  V q = hn::MulAdd(hn::Set(d, 0x1.10627ep-7f), r, hn::Set(d, 0x1.572a08p-5f));
  q = hn::MulAdd(q, r, hn::Set(d, 0x1.5557aep-3f));
  q = hn::MulAdd(q, r, hn::Set(d, 0x1.fffdfcp-2f));
  q = hn::MulAdd(q, r, hn::Set(d, 1.0f));
  q = hn::MulAdd(q, r, hn::Set(d, 1.0f));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, q), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}

// exp(x) for x ≤ 0: 0 below -87.3 (ln of the smallest normal float). For softmax, whose arguments have the largest subtracted.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpNonPositive(D d, V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3f)), ExpCore(d, x));
}

// exp(x) for any x: 0 below -87.3, exp(88.7) = 3.3e38 above 88.7.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  return ExpNonPositive(d, hn::Min(x, hn::Set(d, 88.7f)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log(D, V x) { return x; }
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluTanh(D d, V x) {
  const V u = hn::Mul(x, hn::MulAdd(hn::Mul(x, x), hn::Set(d, -2*0.7978845608f*0.044715f), hn::Set(d, -2*0.7978845608f)));
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), Exp(d, u)));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluErf(D d, V x) { return GeluTanh(d, x); }
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Relu(D d, V x) { return hn::Max(x, hn::Zero(d)); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#endif  // OCTAVO_KERNELS_MATH_INL_H_
