// Softmax, log-softmax and the log-probability of given ids over a vocabulary of 65, 64 rows. An element is a logit.
#include <memory>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/panel.h"
#include "kernels/reference/softmax.h"
#include "kernels/softmax.h"

namespace octavo::bench {

void RegisterSoftmax() {
  constexpr size_t kRows = 64;
  const size_t count = kTiny.vocabulary_size;
  const Work work = {.elements = static_cast<double>(kRows * count)};
  const auto make = [=](const auto& run) {
    auto x = std::make_shared<AlignedFloats>(RandomFloats(PanelFloats(kRows, count), 5));
    auto out = std::make_shared<AlignedFloats>(PanelFloats(kRows, count));
    return [=] { run(x->data(), kRows, count, out->data()); };
  };
  RegisterKernel("softmax", "softmax", "65", work, [=] { return make(Softmax); });
  RegisterKernel("softmax", "log_softmax", "65", work, [=] { return make(LogSoftmax); });
  RegisterKernel("softmax", "log_probability_of", "65", work, [=] {
    auto ids = std::make_shared<std::vector<int32_t>>(kRows, 7);
    return make(
        [ids](const float* x, size_t rows, size_t n, float* out) { LogProbabilityOf(x, rows, n, ids->data(), out); });
  });
  RegisterReference("softmax", "softmax", "65", work, [=] { return make(reference::Softmax<float>); });
  RegisterReference("softmax", "log_softmax", "65", work, [=] { return make(reference::LogSoftmax<float>); });
}

}  // namespace octavo::bench
