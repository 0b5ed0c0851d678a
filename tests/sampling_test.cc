// Which options of a draw are refused, and how.
#include "engine/sampling.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "engine/error.h"

namespace octavo::test {
namespace {

TEST(CheckSampling, AcceptsTheEdges) {
  for (const double temperature : {0.0, -0.0, 1e-320, 1e-30, 1.0, 1e30}) CheckSampling({temperature, 0, 1});
  for (const double top_p : {5e-324, 0.5, 1.0}) CheckSampling({1, 0, top_p});
  for (const uint64_t top_k : {uint64_t{0}, ~uint64_t{0}}) CheckSampling({1, top_k, 1});
}

TEST(CheckSampling, RefusesByName) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const auto message = [](const SamplingOptions& options) {
    try {
      CheckSampling(options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  for (const double temperature : {-1.0, -1e-300, 1e39, kInfinity, -kInfinity, kNaN}) {
    EXPECT_TRUE(message({temperature, 0, 1}).starts_with("temperature is ")) << message({temperature, 0, 1});
  }
  for (const double top_p : {0.0, -0.1, 1.0000001, kInfinity, kNaN}) {
    EXPECT_TRUE(message({1, 0, top_p}).starts_with("top_p is ")) << message({1, 0, top_p});
  }
}

}  // namespace
}  // namespace octavo::test
