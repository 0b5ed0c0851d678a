// Runs of many requests, and whether two completions are the same to the last bit.
#ifndef OCTAVO_TESTS_TESTING_COMPLETIONS_H_
#define OCTAVO_TESTS_TESTING_COMPLETIONS_H_

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "engine/generate.h"
#include "engine/utf8.h"
#include "tests/testing/compare.h"

namespace octavo::test {

// The completions, each seen to come with its request, in their order. `use`, if not null, gets how well the lanes were used.
inline std::vector<Completion> RunAll(const Model& model, const std::vector<GenerateRequest>& requests, int num_threads,
                                      KvPrecision kv = KvPrecision::kF32, LaneUse* use = nullptr) {
  std::vector<Completion> completions;
  size_t next = 0;
  const LaneUse lanes = GenerateAll(
      model, {.num_threads = num_threads, .kv = kv},
      [&] { return next < requests.size() ? std::optional(requests[next++]) : std::nullopt; },
      [&](const GenerateRequest& request, Completion&& completion) {
        const GenerateRequest& expected = requests[completions.size()];
        EXPECT_TRUE(request.sequence == expected.sequence && request.seed == expected.seed &&
                    request.prompt == expected.prompt && request.context == expected.context);
        completions.push_back(std::move(completion));
      });
  EXPECT_EQ(completions.size(), requests.size());
  if (use) *use = lanes;
  return completions;
}

inline ::testing::AssertionResult Same(const Completion& actual, const Completion& expected) {
  if (actual.text != expected.text || actual.num_chars != expected.num_chars || actual.finish != expected.finish ||
      actual.error != expected.error) {
    return ::testing::AssertionFailure() << Quote(actual.text) << " " << actual.error << "; expected "
                                         << Quote(expected.text) << " " << expected.error;
  }
  return SameBits(std::vector{actual.log_probability}, std::vector{expected.log_probability});
}

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_COMPLETIONS_H_
