// The activations over numbers that fit L1, as after a matrix product.
#include <memory>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/activation.h"
#include "kernels/reference/activation.h"

namespace octavo::bench {

void RegisterActivation() {
  static constexpr size_t kCount = 2048;
  const struct {
    const char* name;
    ActivationKind kind;
  } kinds[] = {
      {"gelu", ActivationKind::kGeluErf}, {"gelu_new", ActivationKind::kGeluTanh}, {"relu", ActivationKind::kRelu}};
  for (const auto& [name, kind] : kinds) {
    RegisterKernel("activation", name, "2048", {.elements = kCount}, [kind = kind] {
      auto x = std::make_shared<AlignedFloats>(RandomFloats(kCount, 4));
      auto out = std::make_shared<AlignedFloats>(kCount);
      return [=] { Activate(kind, x->data(), kCount, out->data()); };
    });
    RegisterReference("activation", name, "2048", {.elements = kCount}, [kind = kind] {
      auto x = std::make_shared<AlignedFloats>(RandomFloats(kCount, 4));
      auto out = std::make_shared<AlignedFloats>(kCount);
      return [=] { reference::Activate<float>(kind, x->data(), kCount, out->data()); };
    });
  }
}

}  // namespace octavo::bench
