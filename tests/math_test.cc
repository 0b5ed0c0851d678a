// kernels/math-inl.h on every compiled target that this CPU runs, against libm's double functions: every 257th float, the neighbourhood of
// each branch point and range end; in the slow test every float. Targets with fused multiply-add must give the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/math_test.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "kernels/math-inl.h"

// One table a target: a pointer for each function under test.
HWY_BEFORE_NAMESPACE();
namespace octavo {
namespace HWY_NAMESPACE {

struct ExpOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Exp(d, x);
  }
};
struct LogOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Log(d, x);
  }
};
struct TanhOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Tanh(d, x);
  }
};
struct ErfOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Erf(d, x);
  }
};
struct GeluErfOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return GeluErf(d, x);
  }
};
struct GeluTanhOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return GeluTanh(d, x);
  }
};
struct ReluOp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Relu(d, x);
  }
};

// n is a multiple of every target's lanes (16).
template <class Op>
void Map(const float* in, float* out, size_t n) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreU(Op()(d, hn::LoadU(d, in + i)), d, out + i);
  }
}

// In the order of kFunctions below.
void Evaluate(size_t function, const float* in, float* out, size_t n) {
  switch (function) {
    case 0:
      return Map<ExpOp>(in, out, n);
    case 1:
      return Map<LogOp>(in, out, n);
    case 2:
      return Map<TanhOp>(in, out, n);
    case 3:
      return Map<ErfOp>(in, out, n);
    case 4:
      return Map<GeluErfOp>(in, out, n);
    case 5:
      return Map<GeluTanhOp>(in, out, n);
    case 6:
      return Map<ReluOp>(in, out, n);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace octavo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/math_bounds.h"
#include "kernels/targets.h"

namespace octavo {
namespace {

HWY_EXPORT(Evaluate);

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kMinNormal = std::numeric_limits<float>::min();

uint32_t Bits(float x) { return std::bit_cast<uint32_t>(x); }
float FromBits(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

// In units in the last place of the float binade that holds `exact`.
double UlpError(float got, double exact, float /*x*/) {
  const uint64_t exponent = std::max<uint64_t>(std::bit_cast<uint64_t>(exact) >> 52 & 0x7FF, 1023 - 126);
  return std::abs(got - exact) / std::bit_cast<double>((exponent - 23) << 52);
}

// In units of 2^-24 · |x|, after half the smallest denormal.
double GeluError(float got, double exact, float x) {
  const double error = std::abs(got - exact) - 0x1p-149;
  return error <= 0.0 ? 0.0 : error / (std::abs(static_cast<double>(x)) * 0x1p-24);
}

double GeluErfExact(double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }
double GeluTanhExact(double x) { return x / (1.0 + std::exp(-1.5957691216057307 * (x + 0.044715 * x * x * x))); }
double ReluExact(double x) { return std::max(x, 0.0); }

bool ExpOutside(float x, float got) {
  return x < -87.3f ? got == 0.0f : x > 88.7f ? got > 3.3e38f && got < kInf : true;
}
bool LogOutside(float x, float got) {
  return std::signbit(x) || (x == kInf ? got == kInf : x >= kMinNormal || (got >= -88.03f && got <= -87.33f));
}
bool SaturatesAtOne(float x, float got) { return std::abs(x) < 10.0f || got == std::copysign(1.0f, x); }
bool SaturatesAsRelu(float x, float got) { return std::abs(x) < 5.75f || got == std::max(x, 0.0f); }

struct Function {
  const char* name;
  double (*exact)(double);
  double (*error)(float got, double exact, float x);
  double bound;                           // of the error
  float low, high;                        // where it holds
  bool (*saturates)(float x, float got);  // what must hold beyond or besides
  std::vector<float> branches;
};

// The order of Evaluate's cases.
const std::vector<Function>& Functions() {
  static const std::vector<Function> functions = {
      {"Exp", std::exp, UlpError, kExpUlp, -87.3f, 88.7f, ExpOutside, {-87.3f, 88.7f, std::log(2.0f) / 2}},
      {"Log", std::log, UlpError, kLogUlp, kMinNormal, kMax, LogOutside, {std::sqrt(0.5f), std::sqrt(2.0f), 0x1p32f}},
      {"Tanh", std::tanh, UlpError, kTanhUlp, -kMax, kMax, SaturatesAtOne, {0.625f, 9.02f, 10.0f}},
      {"Erf", std::erf, UlpError, kErfUlp, -kMax, kMax, SaturatesAtOne, {0.921875f, 3.92f, 4.0f}},
      {"GeluErf", GeluErfExact, GeluError, kGeluBound, -kMax, kMax, SaturatesAsRelu, {5.75f}},
      {"GeluTanh", GeluTanhExact, GeluError, kGeluBound, -kMax, kMax, SaturatesAsRelu, {5.75f}},
      {"Relu", ReluExact, UlpError, 0.0, -kMax, kMax, SaturatesAsRelu, {}},
  };
  return functions;
}

// Targets that must give the same bits: those with fused multiply-add, and those without.
struct TargetClass {
  std::string names;
  std::vector<decltype(&HWY_DYNAMIC_DISPATCH(Evaluate))> evaluate;
};

std::vector<TargetClass> TargetClasses() {
  TargetClass with_fma, without_fma;
  for (const std::string& target : RunnableTargets()) {
    TargetClass& target_class = HasFusedMultiplyAdd(target) ? with_fma : without_fma;
    EXPECT_TRUE(UseTarget(target));
    target_class.evaluate.push_back(&HWY_DYNAMIC_DISPATCH(Evaluate));
    target_class.names += (target_class.names.empty() ? "" : " ") + target;
  }
  UseBestTarget();
  std::vector<TargetClass> classes;
  if (!with_fma.evaluate.empty()) classes.push_back(with_fma);
  if (!without_fma.evaluate.empty()) classes.push_back(without_fma);
  return classes;
}

struct Result {
  double max_error = 0.0;
  float at = 0.0f;
  uint64_t failures = 0, differences = 0;
  float failed_at = 0.0f, failed_with = 0.0f, differed_at = 0.0f;

  void Merge(const Result& other) {
    if (other.max_error > max_error) max_error = other.max_error, at = other.at;
    if (failures == 0) failed_at = other.failed_at, failed_with = other.failed_with;
    if (differences == 0) differed_at = other.differed_at;
    failures += other.failures;
    differences += other.differences;
  }
};

// Exp keeps a NaN whose low nine bits are zero, as that of every arithmetic operation; the others keep all.
bool StaysNan(const Function& function, float x) {
  return function.exact != static_cast<double (*)(double)>(std::exp) || (Bits(x) & 0x1FF) == 0;
}

void Check(const Function& function, float x, double exact, float got, Result& result) {
  bool good = true;
  if (std::isnan(x)) {
    good = std::isnan(got) || !StaysNan(function, x);
  } else {
    good = function.saturates(x, got);
    if (x >= function.low && x <= function.high) {
      const double error = function.error(got, exact, x);
      good = good && error <= function.bound;
      if (!(error <= result.max_error)) result.max_error = error, result.at = x;
    }
  }
  if (!good && result.failures++ == 0) result.failed_at = x, result.failed_with = got;
}

// [class][function]
using Results = std::vector<std::vector<Result>>;

Results NoResults(const std::vector<TargetClass>& classes) {
  return Results(classes.size(), std::vector<Result>(Functions().size()));
}

// Every function on every target for each x in `in`, whose size is a multiple of 16.
void Sweep(const std::vector<float>& in, const std::vector<TargetClass>& classes, Results& results) {
  std::vector<float> out(in.size()), other(in.size());
  std::vector<double> exact(in.size());
  for (size_t f = 0; f < Functions().size(); ++f) {
    const Function& function = Functions()[f];
    for (size_t i = 0; i < in.size(); ++i) exact[i] = function.exact(in[i]);
    for (size_t c = 0; c < classes.size(); ++c) {
      Result& result = results[c][f];
      classes[c].evaluate[0](f, in.data(), out.data(), in.size());
      for (size_t i = 0; i < in.size(); ++i) Check(function, in[i], exact[i], out[i], result);
      for (size_t t = 1; t < classes[c].evaluate.size(); ++t) {
        classes[c].evaluate[t](f, in.data(), other.data(), in.size());
        for (size_t i = 0; i < in.size(); ++i) {
          const bool same = Bits(out[i]) == Bits(other[i]) || std::isnan(in[i]);
          if (!same && result.differences++ == 0) result.differed_at = in[i];
        }
      }
    }
  }
}

void Report(const std::vector<TargetClass>& classes, const Results& results) {
  ASSERT_FALSE(classes.empty()) << "no target was tested";
  for (size_t f = 0; f < Functions().size(); ++f) {
    for (size_t c = 0; c < classes.size(); ++c) {
      const Function& function = Functions()[f];
      const Result& result = results[c][f];
      std::printf("%-8s largest error %.4f of %.1f at %.9g on %s\n", function.name, result.max_error, function.bound,
                  result.at, classes[c].names.c_str());
      EXPECT_TRUE(result.max_error <= function.bound);
      EXPECT_EQ(result.failures, 0u) << function.name << "(" << result.failed_at << ") = " << result.failed_with
                                     << " on " << classes[c].names;
      EXPECT_EQ(result.differences, 0u) << function.name << "(" << result.differed_at << ") differs among "
                                        << classes[c].names;
    }
  }
}

TEST(Math, Every257thFloatAndAllEdges) {
  std::vector<float> in;
  for (uint64_t bits = 0; bits < 1ull << 32; bits += 257) in.push_back(FromBits(bits));
  std::vector<float> edges = {0.0f, kMinNormal, kMax, kInf, std::numeric_limits<float>::quiet_NaN(), 1.0f, 2.0f};
  for (const Function& function : Functions())
    edges.insert(edges.end(), function.branches.begin(), function.branches.end());
  for (const float edge : edges) {
    for (uint32_t i = 0; i <= 2000; ++i) {
      const float near = FromBits(Bits(std::abs(edge)) + i - 1000);
      in.insert(in.end(), {near, -near});
    }
  }
  in.resize((in.size() + 15) / 16 * 16);
  const std::vector<TargetClass> classes = TargetClasses();
  Results results = NoResults(classes);
  const size_t block = 4096;
  for (size_t begin = 0; begin < in.size(); begin += block) {
    Sweep({in.begin() + begin, in.begin() + std::min(begin + block, in.size())}, classes, results);
  }
  Report(classes, results);
}

TEST(Math, TanhAndErfAreOdd) {
  std::vector<float> in, negated;
  for (uint64_t i = 0; i < 65536; ++i) {
    if (std::isnan(FromBits(i << 16 | i))) continue;
    in.push_back(FromBits(i << 16 | i));
    negated.push_back(-in.back());
  }
  in.resize(in.size() / 16 * 16);
  std::vector<float> out(in.size()), mirrored(in.size());
  for (const TargetClass& target_class : TargetClasses()) {
    for (const auto evaluate : target_class.evaluate) {
      for (const size_t function : {2, 3}) {
        evaluate(function, in.data(), out.data(), in.size());
        evaluate(function, negated.data(), mirrored.data(), in.size());
        for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(Bits(out[i]), Bits(-mirrored[i])) << in[i];
      }
    }
  }
}

// All 2^32 on all threads; the figures of math_bounds.h and of the closing note come from here.
TEST(Math, EveryFloatSlow) {
  const std::vector<TargetClass> classes = TargetClasses();
  Results results = NoResults(classes);
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    Results own = NoResults(classes);
    std::vector<float> in(4096);
    for (uint64_t begin; (begin = next.fetch_add(in.size())) < 1ull << 32;) {
      for (size_t i = 0; i < in.size(); ++i) in[i] = FromBits(begin + i);
      Sweep(in, classes, own);
    }
    const std::lock_guard<std::mutex> lock(mutex);
    for (size_t c = 0; c < classes.size(); ++c) {
      for (size_t f = 0; f < Functions().size(); ++f) results[c][f].Merge(own[c][f]);
    }
  };
  std::vector<std::thread> threads(std::max(1u, std::thread::hardware_concurrency()));
  for (std::thread& thread : threads) thread = std::thread(work);
  for (std::thread& thread : threads) thread.join();
  Report(classes, results);
}

}  // namespace
}  // namespace octavo
#endif  // HWY_ONCE
