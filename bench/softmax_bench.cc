// Softmax, log-softmax and the log-probability of given ids over a vocabulary, 64 rows. An element is a logit.
#include <memory>
#include <string>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/panel.h"
#include "kernels/reference/softmax.h"
#include "kernels/softmax.h"

namespace octavo::bench {

void RegisterSoftmax() {
  for (const size_t count : {kTiny.vocabulary_size, kOdd.vocabulary_size}) {
    constexpr size_t kRows = 64;
    const double numbers = static_cast<double>(kRows * count);
    const Work work = {.flop = (2 + kExpFlop) * numbers,
                       .bytes = sizeof(float) * numbers,
                       .working_set_bytes = 2 * sizeof(float) * numbers,
                       .elements = numbers};
    const auto make = [=](const auto& run) {
      auto x = std::make_shared<AlignedFloats>(RandomFloats(PanelFloats(kRows, count), 5));
      auto out = std::make_shared<AlignedFloats>(PanelFloats(kRows, count));
      return [=] { run(x->data(), kRows, count, out->data()); };
    };
    const std::string shape = std::to_string(count);
    RegisterKernel({.family = "softmax",
                    .op = "softmax",
                    .shape = shape,
                    .work = work,
                    .make = [=] { return make(Softmax); },
                    .reference = [=] { return make(reference::Softmax<float>); }});
    RegisterKernel({.family = "softmax",
                    .op = "log_softmax",
                    .shape = shape,
                    .work = work,
                    .make = [=] { return make(LogSoftmax); },
                    .reference = [=] { return make(reference::LogSoftmax<float>); }});
    RegisterKernel({.family = "softmax", .op = "log_probability_of", .shape = shape, .work = work, .make = [=] {
                      auto ids = std::make_shared<std::vector<int32_t>>(kRows, 7);
                      return make([ids](const float* x, size_t rows, size_t n, float* out) {
                        LogProbabilityOf(x, rows, n, ids->data(), out);
                      });
                    }});
  }
}

}  // namespace octavo::bench
