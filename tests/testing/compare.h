// Comparisons that can fail. Each is written `error <= bound`, so that NaN fails, and reports the first element that is wrong.
// Use: EXPECT_TRUE(Within(actual, expected, bound)).
#ifndef OCTAVO_TESTS_TESTING_COMPARE_H_
#define OCTAVO_TESTS_TESTING_COMPARE_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <ranges>
#include <type_traits>

namespace octavo::test {

template <typename Range>
concept Numbers = std::ranges::contiguous_range<Range> && std::is_arithmetic_v<std::ranges::range_value_t<Range>>;

// Fails when a comparison would mean nothing: different sizes, or a buffer with itself.
template <Numbers Actual, Numbers Expected>
::testing::AssertionResult Comparable(const Actual& actual, const Expected& expected) {
  const size_t size = std::ranges::size(actual), wanted = std::ranges::size(expected);
  if (size != wanted) return ::testing::AssertionFailure() << size << " elements; expected " << wanted;
  if (size > 0 && static_cast<const void*>(std::ranges::data(actual)) == std::ranges::data(expected)) {
    return ::testing::AssertionFailure() << "a buffer was compared with itself";
  }
  return ::testing::AssertionSuccess();
}

// |actual[i] - expected[i]| ≤ bound_of(i) for all i. What is not finite fails, be it a value (also where both are infinite) or a bound.
template <Numbers Actual, Numbers Expected, typename BoundOf>
::testing::AssertionResult WithinEach(const Actual& actual, const Expected& expected, const BoundOf& bound_of) {
  if (const auto comparable = Comparable(actual, expected); !comparable) return comparable;
  for (size_t i = 0; i < std::ranges::size(actual); ++i) {
    const auto value = static_cast<long double>(std::ranges::data(actual)[i]);
    const auto wanted = static_cast<long double>(std::ranges::data(expected)[i]);
    const auto bound = static_cast<long double>(bound_of(i));
    const long double error = std::abs(value - wanted);
    const bool good = std::isfinite(bound) && error <= bound;
    if (!good) {
      return ::testing::AssertionFailure() << fmt::format("element {} is {}; expected {} within {:.3g}, off by {:.3g}",
                                                          i, value, wanted, bound, error);
    }
  }
  return ::testing::AssertionSuccess();
}

// The same with one bound for all.
template <Numbers Actual, Numbers Expected>
::testing::AssertionResult Within(const Actual& actual, const Expected& expected, double bound) {
  return WithinEach(actual, expected, [bound](size_t) { return bound; });
}

// The same bits in each element: tells 0 from -0, and one NaN equals itself.
template <Numbers Actual, Numbers Expected>
::testing::AssertionResult SameBits(const Actual& actual, const Expected& expected) {
  using Value = std::remove_cv_t<std::ranges::range_value_t<Actual>>;
  static_assert(std::is_same_v<Value, std::remove_cv_t<std::ranges::range_value_t<Expected>>>);
  if (const auto comparable = Comparable(actual, expected); !comparable) return comparable;
  for (size_t i = 0; i < std::ranges::size(actual); ++i) {
    const Value* value = std::ranges::data(actual) + i;
    const Value* wanted = std::ranges::data(expected) + i;
    if (std::memcmp(value, wanted, sizeof(Value)) != 0) {
      return ::testing::AssertionFailure()
             << fmt::format("element {} is {}; expected {}, bit for bit", i, *value, *wanted);
    }
  }
  return ::testing::AssertionSuccess();
}

// Each row of `length` attention weights sums to 1 within the rounding of float weights: (length + 2) · 2^-24.
template <Numbers Weights>
::testing::AssertionResult RowsSumToOne(const Weights& weights, size_t length) {
  const size_t size = std::ranges::size(weights);
  if (length == 0 || size == 0 || size % length != 0) {
    return ::testing::AssertionFailure() << size << " weights are no rows of " << length;
  }
  for (size_t row = 0; row < size / length; ++row) {
    double sum = 0;
    for (size_t i = 0; i < length; ++i) sum += static_cast<double>(std::ranges::data(weights)[row * length + i]);
    const double error = std::abs(sum - 1), bound = static_cast<double>(length + 2) * 0x1p-24;
    const bool good = error <= bound;
    if (!good) return ::testing::AssertionFailure() << fmt::format("row {} sums to {}, bound {:.3g}", row, sum, bound);
  }
  return ::testing::AssertionSuccess();
}

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_COMPARE_H_
