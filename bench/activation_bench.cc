// The activations over numbers that fit L1, as after a matrix product.
#include <memory>
#include <string>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/activation.h"
#include "kernels/reference/activation.h"

namespace octavo::bench {

void RegisterActivation() {
  const struct {
    const char* name;
    ActivationKind kind;
    double
        flop;  // of a number: a polynomial of degree 8 or 9, its fourth power and a multiply-add (kernels/math-inl.h); a maximum
  } kinds[] = {{"gelu", ActivationKind::kGeluErf, 20},
               {"gelu_new", ActivationKind::kGeluTanh, 22},
               {"relu", ActivationKind::kRelu, 1}};
  for (const auto& [name, kind, flop] : kinds) {
    for (const size_t count : {2048, 2039}) {  // 64 rows of width 32; a prime
      const auto make = [count, kind = kind](const auto& run) {
        auto x = std::make_shared<AlignedFloats>(RandomFloats(count, 4));
        auto out = std::make_shared<AlignedFloats>(count);
        return [=] { run(kind, x->data(), count, out->data()); };
      };
      const double numbers = static_cast<double>(count);
      RegisterKernel({.family = "activation",
                      .op = name,
                      .shape = std::to_string(count),
                      .work = {.flop = flop * numbers,
                               .bytes = sizeof(float) * numbers,
                               .working_set_bytes = 2 * sizeof(float) * numbers,
                               .elements = numbers},
                      .make = [=] { return make(Activate); },
                      .reference = [=] { return make(reference::Activate<float>); }});
    }
  }
}

}  // namespace octavo::bench
