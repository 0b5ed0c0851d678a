// What Generate and ScoreText must give, by their definitions: every number comes from a fresh pass without a cache.
#ifndef OCTAVO_TESTS_TESTING_NAIVE_TEXT_H_
#define OCTAVO_TESTS_TESTING_NAIVE_TEXT_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/forward.h"
#include "engine/generate.h"
#include "engine/philox.h"
#include "engine/reference_pass.h"
#include "kernels/reference/sample.h"

namespace octavo::test {

// The vector pass keeps every logit within 1e-4 of the double one (golden_test.cc); a log-probability is a logit less a mean of logits.
constexpr double kLogProbabilityBound = 2e-4;

// Logits of the character behind `window`, whose characters sit in seats 0, 1, …
inline std::vector<double> NaiveLogits(const Model& model, std::span<const TokenId> window) {
  ReferencePass<double> pass(model);
  const auto logits = pass.ReadAll(window).last(model.vocabulary().size());
  return {logits.begin(), logits.end()};
}

// The same from the vector kernels, with keys and values rounded to bfloat16.
inline std::vector<double> Bf16Logits(const Model& model, std::span<const TokenId> window) {
  TextPass pass(model, nullptr, KvPrecision::kBf16);
  const size_t last = window.size() - 1;
  pass.Read(window, last);
  const float* logits = pass.Logits(last / kPanelRows) + last % kPanelRows;
  std::vector<double> out(model.vocabulary().size());
  for (size_t v = 0; v < out.size(); ++v) out[v] = logits[v * kPanelRows];
  return out;
}

inline double NaiveLogProbability(const std::vector<double>& logits, TokenId id) {
  const long double largest = *std::max_element(logits.begin(), logits.end());
  long double sum = 0;
  for (const double x : logits) sum += std::exp(x - largest);
  return static_cast<double>(logits[static_cast<size_t>(id)] - largest - std::log(sum));
}

// One completion, without stop strings and special tokens.
template <typename LogitsOf = decltype(NaiveLogits)>
Completion NaiveGenerate(const Model& model, const GenerateRequest& request, const LogitsOf& logits_of = NaiveLogits) {
  const GenerateOptions& options = request.options;
  const size_t context = model.config().context_length;
  Completion result;
  std::vector<TokenId> text = request.prompt;
  if (text.empty()) text = {model.start_token()};
  // How many characters sit in the seats.
  size_t seated = std::min(text.size(), context);
  if (options.max_chars > 0 && options.overflow == Overflow::kStop && text.size() > context) {
    result.finish = Finish::kContext;
    return result;
  }
  for (uint64_t step = 0; step < options.max_chars; ++step) {
    if (step > 0 && seated < context) {
      ++seated;
    } else if (step > 0 && options.overflow == Overflow::kStop) {
      result.finish = Finish::kContext;
      break;
    } else if (step > 0 && options.overflow == Overflow::kRestart) {
      seated = context == 1 ? 1 : context / 2;
    }
    const std::vector<double> logits = logits_of(model, std::span(text).last(seated));
    const std::vector<float> floats(logits.begin(), logits.end());
    std::vector<float> scratch(2 * floats.size());
    std::vector<int32_t> order(floats.size());
    const TokenId id =
        reference::Sample(floats.data(), floats.size(), static_cast<float>(options.sampling.temperature),
                          options.sampling.top_k, static_cast<float>(options.sampling.top_p),
                          UniformDraw(request.seed, request.sequence, step), scratch.data(), order.data());
    text.push_back(id);
    result.text += model.vocabulary().text(id);
    result.log_probability += NaiveLogProbability(logits, id);
    ++result.num_chars;
  }
  return result;
}

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_NAIVE_TEXT_H_
