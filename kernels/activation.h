// The activations over any run of floats. Inside the inner network they are epilogues of MatMul.
#ifndef OCTAVO_KERNELS_ACTIVATION_H_
#define OCTAVO_KERNELS_ACTIVATION_H_

#include <cstddef>

#include "kernels/activation_kind.h"

namespace octavo {

// out[i] = activation(x[i]) for i < count; the formulas stand at ActivationKind. Any alignment; out may be x.
// NaN stays NaN; large |x| gives x or zero. Error: kGeluBound · 2^-24 · |x| (math_bounds.h); relu is exact.
void Activate(ActivationKind kind, const float* x, size_t count, float* out);

}  // namespace octavo

#endif  // OCTAVO_KERNELS_ACTIVATION_H_
