// The activations of the inner network. One list for kernels and everyone above.
#ifndef OCTAVO_KERNELS_ACTIVATION_KIND_H_
#define OCTAVO_KERNELS_ACTIVATION_KIND_H_

namespace octavo {

enum class ActivationKind {
  kGeluErf,   // x/2 · (1 + erf(x/√2)), "gelu" in configurations
  kGeluTanh,  // x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), "gelu_new"
  kRelu,      // max(x, 0), "relu"
};

}  // namespace octavo

#endif  // OCTAVO_KERNELS_ACTIVATION_KIND_H_
