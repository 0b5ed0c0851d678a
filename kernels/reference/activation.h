// The specification of the activations, in plain C++; see embed.h for what Value means.
#ifndef OCTAVO_KERNELS_REFERENCE_ACTIVATION_H_
#define OCTAVO_KERNELS_REFERENCE_ACTIVATION_H_

#include <cstddef>

#include "kernels/activation_kind.h"

namespace octavo::reference {

// out[i] = activation(x[i]) for i < count; the formulas stand at ActivationKind. out may be x.
// Saturates cleanly: x for large x, 0 (or a tiny negative) for very negative x, NaN stays NaN.
// Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016), section 2.
template <typename Value>
void Activate(ActivationKind kind, const Value* x, size_t count, Value* out);

}  // namespace octavo::reference

#endif  // OCTAVO_KERNELS_REFERENCE_ACTIVATION_H_
