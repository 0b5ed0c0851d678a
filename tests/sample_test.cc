// The draw: every rule of sample.h against another way to compute it, and the edges of temperature, top-k and top-p, by the scalar
// reference and by the vector kernel on every target.
#include "kernels/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "engine/aligned.h"
#include "engine/check/guarded.h"
#include "engine/error.h"
#include "engine/philox.h"
#include "engine/sampling.h"
#include "kernels/panel.h"
#include "kernels/reference/sample.h"
#include "kernels/targets.h"
#include "tests/testing/compare.h"
#include "tests/testing/random.h"
#include "tests/testing/targets.h"
#include "tests/testing/vector_kernel.h"

namespace octavo::test {
namespace {

using check::Guarded;

struct Rule {
  float temperature = 1;
  uint64_t top_k = 0;
  float top_p = 1;
};

int32_t DrawByReference(const std::vector<float>& logits, const Rule& rule, float uniform) {
  std::vector<float> scratch(2 * logits.size(), std::numeric_limits<float>::quiet_NaN());
  std::vector<int32_t> order(logits.size(), -1);
  return reference::Sample(logits.data(), logits.size(), rule.temperature, rule.top_k, rule.top_p, uniform,
                           scratch.data(), order.data());
}

// The same logits and rule in all 16 rows, each row with a uniform number of its own.
std::vector<int32_t> DrawByKernel(const std::vector<float>& logits, const Rule& rule,
                                  const std::vector<float>& uniforms) {
  const size_t count = logits.size();
  AlignedFloats panel(kPanelRows * count), scratch(SampleScratchFloats(count));
  for (size_t i = 0; i < count; ++i) std::fill_n(panel.begin() + static_cast<ptrdiff_t>(i * kPanelRows), 16, logits[i]);
  const int32_t k = static_cast<int32_t>(std::min<uint64_t>(rule.top_k, std::numeric_limits<int32_t>::max()));
  const std::vector<float> temperature(kPanelRows, rule.temperature), top_p(kPanelRows, rule.top_p);
  const std::vector<int32_t> top_k(kPanelRows, k);
  std::vector<int32_t> drawn;
  for (size_t begin = 0; begin < uniforms.size(); begin += kPanelRows) {
    std::vector<float> uniform(kPanelRows);
    for (size_t r = 0; r < kPanelRows; ++r) uniform[r] = uniforms[std::min(begin + r, uniforms.size() - 1)];
    int32_t ids[kPanelRows];
    Sample(panel.data(), count, {temperature.data(), top_k.data(), top_p.data(), uniform.data()}, scratch.data(), ids);
    drawn.insert(drawn.end(), ids, ids + kPanelRows);
  }
  drawn.resize(uniforms.size());
  return drawn;
}

// By the reference, or by the vector kernel on a target. What these tests ask hangs on no rounding, unless it is the one of equal numbers,
// so that all must give the same ids.
class SampleTest : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr const char* kReference = "reference";

  void SetUp() override { ASSERT_TRUE(GetParam() == kReference || UseTarget(GetParam())); }
  void TearDown() override { UseBestTarget(); }

  static std::vector<int32_t> DrawEach(const std::vector<float>& logits, const Rule& rule,
                                       const std::vector<float>& uniforms) {
    if (GetParam() != kReference) return DrawByKernel(logits, rule, uniforms);
    std::vector<int32_t> drawn;
    for (const float uniform : uniforms) drawn.push_back(DrawByReference(logits, rule, uniform));
    return drawn;
  }

  static int32_t Draw(const std::vector<float>& logits, const Rule& rule, float uniform) {
    const std::vector<int32_t> drawn = DrawEach(logits, rule, std::vector<float>(kPanelRows, uniform));
    EXPECT_EQ(std::count(drawn.begin(), drawn.end(), drawn[0]), static_cast<ptrdiff_t>(kPanelRows))
        << "rows differ in what they draw";
    return drawn[0];
  }

  // How often each id comes out over `count` evenly spaced uniform numbers.
  static std::map<int32_t, int> Frequencies(const std::vector<float>& logits, const Rule& rule, int count = 4096) {
    std::vector<float> uniforms;
    for (int i = 0; i < count; ++i) uniforms.push_back(static_cast<float>(i) / static_cast<float>(count));
    std::map<int32_t, int> frequencies;
    for (const int32_t id : DrawEach(logits, rule, uniforms)) ++frequencies[id];
    return frequencies;
  }

  static std::set<int32_t> Drawn(const std::vector<float>& logits, const Rule& rule) {
    std::set<int32_t> ids;
    for (const auto& [id, times] : Frequencies(logits, rule)) ids.insert(id);
    return ids;
  }

 public:
  static std::vector<std::string> Implementations() {
    std::vector<std::string> names = TestedTargets();
    names.insert(names.begin(), kReference);
    return names;
  }
};

// The rules again: pairs are sorted once by (logit falling, id), cut twice, sorted back by id.
int32_t Formula(const std::vector<float>& logits, const Rule& rule, float uniform) {
  struct Entry {
    float p, logit;
    int32_t id;
  };
  std::vector<Entry> entries;
  const float largest = *std::max_element(logits.begin(), logits.end());
  for (size_t i = 0; i < logits.size(); ++i) {
    const float p = static_cast<float>(std::exp(static_cast<double>((logits[i] - largest) / rule.temperature)));
    entries.push_back({p, logits[i], static_cast<int32_t>(i)});
  }
  const auto by_id = [](const Entry& a, const Entry& b) { return a.id < b.id; };
  const auto total = [&] {
    std::sort(entries.begin(), entries.end(), by_id);
    return std::accumulate(entries.begin(), entries.end(), 0.0f, [](float sum, const Entry& e) { return sum + e.p; });
  };
  const auto keep = [&](size_t count) { entries.resize(std::min(entries.size(), count)); };
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(-a.logit, a.id) < std::pair(-b.logit, b.id); });
  if (rule.top_k > 0) keep(rule.top_k);
  if (rule.top_p < 1) {
    const float enough = rule.top_p * total();
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return std::pair(-a.p, a.id) < std::pair(-b.p, b.id); });
    size_t count = 0;
    for (float sum = 0; count < entries.size() && (count == 0 || sum < enough); ++count) sum += entries[count].p;
    keep(count);
  }
  const float threshold = uniform * total();
  float sum = 0;
  for (const Entry& entry : entries) {
    sum += entry.p;
    if (sum > threshold) return entry.id;
  }
  return entries.back().id;
}

TEST(SampleReference, AgreesWithTheRulesWrittenAnotherWay) {
  Random random(1);
  for (int i = 0; i < 4000; ++i) {
    const size_t count = 1 + random.Below(70);
    std::vector<float> logits = random.Floats(count, -8, 8);
    // Some ties.
    if (i % 3 == 0)
      std::transform(logits.begin(), logits.end(), logits.begin(), [](float x) { return std::round(x / 2); });
    Rule rule;
    rule.temperature = static_cast<float>(std::exp2(random.Uniform(-6, 6)));
    if (random.Below(2)) rule.top_k = random.Below(count + 3);
    if (random.Below(2)) rule.top_p = static_cast<float>(random.Uniform(0.01, 1));
    const float uniform = static_cast<float>(random.Bits() >> 40) * 0x1p-24f;
    EXPECT_EQ(DrawByReference(logits, rule, uniform), Formula(logits, rule, uniform))
        << count << " logits, temperature " << rule.temperature << ", k " << rule.top_k << ", p " << rule.top_p;
  }
}

TEST_P(SampleTest, FollowsTheDistribution) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f), std::log(8.0f)};
  for (const auto& [id, weight] : std::map<int32_t, double>{{0, 1}, {1, 2}, {2, 5}, {3, 8}}) {
    EXPECT_NEAR(Frequencies(logits, {})[id], 4096 * weight / 16, 1);
    // Temperature 1/2 squares the odds, 2 takes their roots.
    EXPECT_NEAR((Frequencies(logits, {.temperature = 0.5f})[id]), 4096 * weight * weight / 94, 1);
    EXPECT_NEAR((Frequencies(logits, {.temperature = 2})[id]),
                4096 * std::sqrt(weight) / (1 + 2 * 1.5 * std::sqrt(2.0) + std::sqrt(5.0)), 1);
  }
}

// Ids are drawn in id order: a larger uniform number never gives a smaller id.
TEST_P(SampleTest, IsMonotonicInTheUniformNumber) {
  const std::vector<float> logits = Random(2).Floats(33, -2, 2);
  int32_t last = 0;
  for (int i = 0; i < 4096; ++i) {
    const int32_t id = Draw(logits, {.top_k = 20, .top_p = 0.9f}, static_cast<float>(i) * 0x1p-12f);
    EXPECT_GE(id, last);
    last = id;
  }
  EXPECT_GT(last, 16);
}

TEST_P(SampleTest, ThresholdsAreExact) {
  const std::vector<float> equal(4, 1.5f);
  // The first running sum that exceeds u · 4; reaching it is not enough.
  EXPECT_EQ(Draw(equal, {}, 0.25f), 1);
  EXPECT_EQ(Draw(equal, {}, std::nextafter(0.25f, 0.0f)), 0);
  EXPECT_EQ(Draw(equal, {}, 0), 0);
  EXPECT_EQ(Draw(equal, {}, 1 - 0x1p-24f), 3);
  // At every running sum and just below it, with ids between that underflowed and add nothing.
  std::vector<float> sparse(64, -1000);
  for (size_t i = 2; i < 64; i += 4) sparse[i] = 3;
  for (const Rule& rule : {Rule{}, Rule{1, 64, 1}, Rule{1, 40, 1}, Rule{0.3f, 0, 1}}) {
    for (int i = 1; i < 16; ++i) {
      const float sum = static_cast<float>(i) / 16;
      EXPECT_EQ(Draw(sparse, rule, sum), 4 * i + 2) << "k " << rule.top_k;
      EXPECT_EQ(Draw(sparse, rule, std::nextafter(sum, 0.0f)), 4 * i - 2) << "k " << rule.top_k;
    }
  }
}

// Where rounding keeps every running sum from exceeding the threshold, and where the last ids underflow, the last kept one it is.
TEST_P(SampleTest, TheLastKeptIdIsTheFallback) {
  const float below_one = 1 - 0x1p-24f;
  for (size_t count = 1; count < 300; ++count) {
    const std::vector<float> logits = Random(count).Floats(count, -1, 1);
    EXPECT_EQ(Draw(logits, {}, below_one), Formula(logits, {}, below_one));
  }
  EXPECT_EQ(Draw({0, -1000, -1000}, {}, below_one), 0);
  EXPECT_EQ(Draw({-1000, 0, -1000}, {}, 0), 1);
}

TEST_P(SampleTest, TemperatureZeroIsGreedy) {
  const std::vector<float> logits = {1, 3, 2, 3, -5};
  for (const float temperature : {0.0f, -0.0f, std::numeric_limits<float>::denorm_min(), 1e-40f}) {
    for (const float uniform : {0.0f, 0.5f, 1 - 0x1p-24f}) {
      EXPECT_EQ(Draw(logits, {.temperature = temperature}, uniform), 1) << "ties go to the lowest id";
    }
  }
}

TEST_P(SampleTest, TinyTemperaturesEqualGreedyWhereNothingTies) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<float> logits = Random(seed).Floats(65, -3, 3);
    const int32_t greedy = Draw(logits, {.temperature = 0}, 0.5f);
    for (const float temperature : {1e-30f, std::numeric_limits<float>::min()}) {
      for (const float uniform : {0.0f, 0.7f, 1 - 0x1p-24f}) {
        EXPECT_EQ(Draw(logits, {.temperature = temperature}, uniform), greedy);
        EXPECT_EQ(Draw(logits, {temperature, 3, 0.5f}, uniform), greedy);
      }
    }
  }
  EXPECT_EQ(Drawn({2, 7, 7, 1}, {.temperature = 1e-30f}), (std::set<int32_t>{1, 2})) << "ties share";
  EXPECT_EQ(Drawn({1000, 1001, -1000}, {.temperature = 1.2e-38f}), (std::set<int32_t>{1})) << "quotients overflow";
}

TEST_P(SampleTest, HugeTemperaturesAreUniform) {
  for (const float temperature : {1e30f, std::numeric_limits<float>::max()}) {
    const std::map<int32_t, int> frequencies = Frequencies({-50, 0, 50, 3e30f * 1e-20f}, {.temperature = temperature});
    for (int32_t id = 0; id < 4; ++id) EXPECT_EQ(frequencies.at(id), 1024);
  }
  EXPECT_EQ(Drawn({-3e38f, 3e38f}, {.temperature = 1}), (std::set<int32_t>{1})) << "a difference that overflows";
}

TEST_P(SampleTest, TopK) {
  const std::vector<float> distinct = {0.5f, 0.1f, 0.4f, 0.2f, 0.3f};
  const std::set<int32_t> all = {0, 1, 2, 3, 4};
  EXPECT_EQ(Drawn(distinct, {.top_k = 0}), all);
  EXPECT_EQ(Drawn(distinct, {.top_k = 1}), (std::set<int32_t>{0}));
  EXPECT_EQ(Drawn(distinct, {.top_k = 2}), (std::set<int32_t>{0, 2}));
  EXPECT_EQ(Drawn(distinct, {.top_k = 4}), (std::set<int32_t>{0, 2, 3, 4}));
  for (const uint64_t k : {uint64_t{5}, uint64_t{6}, uint64_t{100'000}, ~uint64_t{0}}) {
    EXPECT_EQ(Drawn(distinct, {.top_k = k}), all);
  }
}

TEST_P(SampleTest, TopKKeepsExactlyKAmongTies) {
  const std::vector<float> equal(5, -2);
  for (const uint64_t k : {1, 2, 3, 4, 5, 6}) {
    const std::map<int32_t, int> frequencies = Frequencies(equal, {.top_k = k}, 4200);
    const size_t kept = std::min<size_t>(k, 5);
    EXPECT_EQ(frequencies.size(), kept);
    for (const auto& [id, times] : frequencies) {
      EXPECT_LT(static_cast<size_t>(id), kept) << "ties go to the lowest id";
      EXPECT_NEAR(times, 4200 / static_cast<double>(kept), 1);
    }
  }
  EXPECT_EQ(Drawn({1, 2, 1, 2, 1}, {.top_k = 3}), (std::set<int32_t>{0, 1, 3}));
}

// Top-k goes by logits, also where the temperature makes their probabilities equal.
TEST_P(SampleTest, TopKWithHugeTemperature) {
  EXPECT_EQ(Drawn({0, 1, 0.5f, 2}, {.temperature = 1e30f, .top_k = 2}), (std::set<int32_t>{1, 3}));
}

// Kept with a probability that underflowed is still kept: top-k counts ids, not mass.
TEST_P(SampleTest, TopKWithUnderflow) { EXPECT_EQ(Drawn({-1000, 0, -1000}, {.top_k = 2}), (std::set<int32_t>{1})); }

TEST_P(SampleTest, TopPKeepsTheSmallestSetThatReachesIt) {
  // Probabilities 1/16, 2/16, 4/16, 8/16 and 1/16, all exact.
  const std::vector<float> logits = {std::log(1.0f), std::log(2.0f), std::log(4.0f), std::log(8.0f), std::log(1.0f)};
  EXPECT_EQ(Drawn(logits, {.top_p = 1e-30f}), (std::set<int32_t>{3})) << "never empty";
  EXPECT_EQ(Drawn(logits, {.top_p = 0.49f}), (std::set<int32_t>{3}));
  EXPECT_EQ(Drawn(logits, {.top_p = 0.51f}), (std::set<int32_t>{2, 3}));
  EXPECT_EQ(Drawn(logits, {.top_p = 0.74f}), (std::set<int32_t>{2, 3}));
  EXPECT_EQ(Drawn(logits, {.top_p = 0.76f}), (std::set<int32_t>{1, 2, 3}));
  EXPECT_EQ(Drawn(logits, {.top_p = 0.9f}), (std::set<int32_t>{0, 1, 2, 3})) << "of the two least, the lower id";
  EXPECT_EQ(Drawn(logits, {.top_p = 0.99f}), (std::set<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(Drawn(logits, {.top_p = 1}), (std::set<int32_t>{0, 1, 2, 3, 4}));
}

TEST_P(SampleTest, TopPReachedExactlyIsEnough) {
  const std::vector<float> equal(4, 0);
  EXPECT_EQ(Drawn(equal, {.top_p = 0.25f}), (std::set<int32_t>{0}));
  EXPECT_EQ(Drawn(equal, {.top_p = 0.5f}), (std::set<int32_t>{0, 1}));
  EXPECT_EQ(Drawn(equal, {.top_p = std::nextafter(0.5f, 1.0f)}), (std::set<int32_t>{0, 1, 2}));
}

// Top-p counts over what top-k kept: of 8, 4, 2 the first has 8/14.
// Where all are equal, rounding and ties decide everything: the lowest ids stay.
TEST_P(SampleTest, TopPOfManyEqualLogits) {
  constexpr size_t kCount = 8000, kEvery = 4;
  constexpr float kLastUniform = 1 - 0x1p-24f;
  EXPECT_EQ(Draw(std::vector<float>(kCount, 3), {.top_p = 0.95f}, kLastUniform), 7599);
  EXPECT_EQ(Draw(std::vector<float>(kCount, 3), {.top_p = 0x1p-20f}, kLastUniform), 0);
  std::vector<float> some(kCount, -200);  // p underflows
  for (size_t i = 1; i < kCount; i += kEvery) some[i] = 0;
  EXPECT_EQ(Draw(some, {.top_p = 0.5f}, kLastUniform), static_cast<int32_t>(1 + kEvery * 999));
  // In the vector beside it, rows that need no sorting.
  EXPECT_EQ(Draw(some, {.top_k = 10, .top_p = 0.5f}, kLastUniform), static_cast<int32_t>(1 + kEvery * 4));
}

// The least p that stays is told from its neighbours however close: by the reference, with rows that differ.
TEST_P(SampleTest, TopPOfManyLogitsKeepsWhatTheReferenceKeeps) {
  for (const float scale : {0.01f, 1.0f, 60.0f}) {
    const std::vector<float> logits = Random(7).Floats(300, -scale, scale);
    for (const float top_p : {0.1f, 0.9f, 0.99f}) {
      std::set<int32_t> kept;
      for (float uniform = 0; uniform < 1; uniform += 0x1p-10f) {
        kept.insert(DrawByReference(logits, {.top_p = top_p}, uniform));
      }
      const std::set<int32_t> drawn = Drawn(logits, {.top_p = top_p});
      // An exponential off by its last bits may let one more or one less in.
      std::vector<int32_t> others;
      std::set_difference(drawn.begin(), drawn.end(), kept.begin(), kept.end(), std::back_inserter(others));
      EXPECT_TRUE(others.size() <= 1) << others.size() << " ids, scale " << scale << ", top-p " << top_p;
    }
  }
}

TEST_P(SampleTest, TopPIsRenormalisedAfterTopK) {
  const std::vector<float> logits = {std::log(1.0f), std::log(2.0f), std::log(4.0f), std::log(8.0f), std::log(1.0f)};
  EXPECT_EQ(Drawn(logits, {.top_k = 3, .top_p = 0.55f}), (std::set<int32_t>{3}));
  EXPECT_EQ(Drawn(logits, {.top_k = 0, .top_p = 0.55f}), (std::set<int32_t>{2, 3}));
  EXPECT_EQ(Drawn(logits, {.top_k = 2, .top_p = 0.99f}), (std::set<int32_t>{2, 3}));
}

TEST(SampleReference, StaysInsideItsBuffers) {
  for (const size_t count : OddSizes()) {
    Guarded<float> logits(Random(count).Floats(count)), scratch(2 * count);
    Guarded<int32_t> order(count);
    for (const Rule& rule : {Rule{0, 0, 1}, Rule{1, 0, 1}, Rule{1, 5, 1}, Rule{1, 0, 0.5f}, Rule{1, 5, 0.5f}}) {
      const int32_t id = reference::Sample(logits.data(), count, rule.temperature, rule.top_k, rule.top_p, 0.9f,
                                           scratch.data(), order.data());
      EXPECT_TRUE(id >= 0 && static_cast<size_t>(id) < count);
    }
    EXPECT_TRUE(scratch.Intact() && order.Intact() && logits.Intact());
    EXPECT_TRUE(SameBits(logits.span(), Random(count).Floats(count)));
  }
}

TEST_P(SampleTest, OneLogit) {
  for (const float temperature : {0.0f, 1.0f, 1e30f}) EXPECT_EQ(Draw({-7}, {temperature, 1, 0.1f}, 0.9f), 0);
}

INSTANTIATE_TEST_SUITE_P(, SampleTest, ::testing::ValuesIn(SampleTest::Implementations()),
                         [](const auto& test) { return test.param; });

// The engine's draw is the kernel's with the uniform number of (seed, sequence, step), and with options as float.
TEST(Sampler, DrawsWithTheUniformNumberOfTheStep) {
  Sampler sampler;
  for (uint64_t i = 0; i < 200; ++i) {
    const std::vector<float> logits = Random(i).Floats(1 + i % 65, -4, 4);
    const uint64_t seed = i * 0x100000001, sequence = i << 33 | 5, step = i;
    const int32_t expected = Formula(logits, {0.7f, 20, 0.95f}, UniformDraw(seed, sequence, step));
    EXPECT_EQ(sampler.Draw(logits, {.temperature = 0.7, .top_k = 20, .top_p = 0.95}, seed, sequence, step), expected);
  }
  const std::vector<float> logits = {0, 3, 1};
  EXPECT_EQ(sampler.Draw(logits, {.temperature = 1, .top_p = 1e-320}, 1, 2, 3), 1) << "a top_p that no float holds";
  EXPECT_EQ(sampler.Draw(logits, {.temperature = 1e-320}, 1, 2, 3), 1);
}

TEST(VectorKernel, AgreesWithTheReferenceOnEveryTarget) { ExpectVectorKernel("sample"); }

}  // namespace
}  // namespace octavo::test
