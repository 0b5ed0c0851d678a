// GELU by erf and by tanh, and relu, scalar; see activation.h.
#include "kernels/reference/activation.h"

#include <cmath>
#include <numbers>

#include "kernels/strict_math.h"

namespace octavo::reference {
namespace {

// erfc keeps the relative precision for negative x that 1 + erf would cancel away. It reaches 2: x is halved first, so that no product
// overflows.
template <typename Value>
Value GeluErf(Value x) {
  const Value scaled = x / std::numbers::sqrt2_v<Value>;
  return x / 2 * std::erfc(-scaled);
}

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), which does not cancel for negative u.
template <typename Value>
Value GeluTanh(Value x) {
  const Value sqrt_2_over_pi = std::numbers::sqrt2_v<Value> * std::numbers::inv_sqrtpi_v<Value>;
  const Value u = sqrt_2_over_pi * (x + static_cast<Value>(0.044715) * x * x * x);
  const Value denominator = 1 + std::exp(-2 * u);
  return std::isinf(denominator) ? Value{0} : x / denominator;
}

template <typename Value>
Value ActivateOne(ActivationKind kind, Value x) {
  switch (kind) {
    case ActivationKind::kGeluErf:
      return GeluErf(x);
    case ActivationKind::kGeluTanh:
      return GeluTanh(x);
    case ActivationKind::kRelu:
      return x < 0 ? Value{0} : x;
  }
  return x;
}

}  // namespace

template <typename Value>
void Activate(ActivationKind kind, const Value* x, size_t count, Value* out) {
  for (size_t i = 0; i < count; ++i) out[i] = ActivateOne(kind, x[i]);
}

template void Activate(ActivationKind, const double*, size_t, double*);
template void Activate(ActivationKind, const float*, size_t, float*);

}  // namespace octavo::reference
