// The caller's floating-point control: whatever it is, what is generated, scored, checked and loaded has the same bits, and it is given
// back as it was found.
#include "engine/float_control.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/check/check.h"
#include "engine/generate.h"
#include "engine/score.h"
#include "tests/testing/compare.h"
#include "tests/testing/models.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace octavo::test {
namespace {

// The bits that flush denormal results and inputs to zero, and the register that holds them, with rounding and flags.
#if defined(__x86_64__)
constexpr uint64_t kFlush = 0x8040;
uint64_t Control() { return _mm_getcsr(); }
void SetControl(uint64_t control) { _mm_setcsr(static_cast<uint32_t>(control)); }
#else
constexpr uint64_t kFlush = uint64_t{1} << 24;
uint64_t Control() {
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
void SetControl(uint64_t control) { asm volatile("msr fpcr, %0" : : "r"(control)); }
#endif

// What has been raised, a denormal operand among it, which <cfenv> has no name for.
constexpr uint64_t kRaised = FE_ALL_EXCEPT | 2;

struct Setting {
  const char* name;
  int rounding;
  uint64_t flush;
};
constexpr Setting kSettings[] = {
    {"flushes to zero", FE_TONEAREST, kFlush}, {"rounds up", FE_UPWARD, 0}, {"does both", FE_UPWARD, kFlush}};

// Runs `work` with a caller's setting, and one exception raised; expects to find all of it afterwards. On a thread of its own: oneTBB
// keeps the control under which a thread first came to it.
template <typename Work>
void RunWith(const Setting& setting, const Work& work) {
  std::thread([&] {
    std::fesetround(setting.rounding);
    SetControl(Control() | setting.flush);
    std::feclearexcept(FE_ALL_EXCEPT);
    std::feraiseexcept(FE_DIVBYZERO);
    const uint64_t control = Control();
    work();
    EXPECT_EQ(Control() & ~uint64_t{FE_ALL_EXCEPT}, control & ~uint64_t{FE_ALL_EXCEPT})
        << "a caller who " << setting.name;
    EXPECT_EQ(std::fegetround(), setting.rounding);
    EXPECT_EQ(std::fetestexcept(FE_DIVBYZERO | FE_INVALID), FE_DIVBYZERO);
  }).join();
}

// A model that computes with denormals: flushed to zero they make all characters equal.
//
//   wte, wpe ~ 2^-130, blocks = 0, so that ln_f, whose variance underflows, makes 2^-62 of them, and the head 1
Model DenormalModel() {
  const ModelShape shape = M8Shape();
  const ModelConfig config = ConfigOf(shape);
  Weights weights = RandomWeights(config, 1);
  for (LayerWeights& layer : weights.layers) {
    for (Linear* linear : {&layer.attn_proj, &layer.mlp_proj}) {
      linear->weight.assign(linear->weight.size(), 0.0f);
      linear->bias.assign(linear->bias.size(), 0.0f);
    }
  }
  for (auto* table : {&weights.wte, &weights.wpe}) {
    for (float& x : *table) x *= 0x1p-130f;
  }
  weights.ln_f.gain.assign(config.width, 0x1p60f);
  weights.ln_f.bias.assign(config.width, 0.0f);
  for (float& x : weights.lm_head) x *= 0x1p62f;
  return BuildModel(config, shape.vocabulary, std::move(weights));
}

// What a run gives: texts, and the bits of the numbers.
struct Results {
  std::vector<std::string> texts;
  std::vector<double> numbers;
};

std::vector<GenerateRequest> Prompts(const Model& model) {
  std::vector<GenerateRequest> requests(150);
  for (uint64_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = Random(i).Tokens(i % 20, model.vocabulary().size());
    requests[i].options.max_chars = 12;
    requests[i].options.sampling.top_p = i % 3 ? 1 : 0.9;
    requests[i].seed = 7;
    requests[i].sequence = i;
  }
  return requests;
}

std::vector<ScoreRequest> Texts(const Model& model) {
  std::vector<ScoreRequest> requests(60);
  for (size_t i = 0; i < requests.size(); ++i) requests[i].text = Random(i).Tokens(2 + i, model.vocabulary().size());
  return requests;
}

void Append(Results& results, const Completion& completion) {
  results.texts.push_back(completion.text + completion.error);
  results.numbers.push_back(completion.log_probability);
}

void Append(Results& results, const Score& score) {
  results.texts.push_back(score.error);
  results.numbers.insert(results.numbers.end(), score.log_probabilities.begin(), score.log_probabilities.end());
  results.numbers.push_back(score.nats);
}

// The requests one after another, from first to last.
template <typename Request>
auto Each(const std::vector<Request>& requests) {
  return [&requests, next = size_t{0}]() mutable {
    return next < requests.size() ? std::optional(requests[next++]) : std::nullopt;
  };
}

template <typename Run>
void ExpectSameUnderAllSettings(const Run& run) {
  const Results expected = run();
  for (const Setting& setting : kSettings) {
    Results results;
    RunWith(setting, [&] { results = run(); });
    EXPECT_EQ(results.texts, expected.texts) << "a caller who " << setting.name;
    EXPECT_TRUE(SameBits(results.numbers, expected.numbers)) << "a caller who " << setting.name;
  }
}

TEST(FloatControl, IsTheDefaultInsideAndAsFoundOutside) {
  const uint64_t standard = Control() & ~uint64_t{FE_ALL_EXCEPT};
  for (const Setting& setting : kSettings) {
    uint64_t inside = 0;
    RunWith(setting, [&] {
      const DefaultFloatControl control;
      inside = Control();
      std::feraiseexcept(FE_INVALID);
    });
    EXPECT_EQ(inside, standard) << "a caller who " << setting.name;
  }
}

TEST(FloatControl, GeneratingIgnoresTheCallers) {
  for (const Model& model : {RandomModel(M8Shape()), DenormalModel()}) {
    const std::vector<GenerateRequest> requests = Prompts(model);
    for (const int threads : {1, 3}) {
      ExpectSameUnderAllSettings([&] {
        Results results;
        GenerateAll(model, {.num_threads = threads}, Each(requests),
                    [&](const GenerateRequest&, Completion&& completion) { Append(results, completion); });
        return results;
      });
      ExpectSameUnderAllSettings([&] {
        Results results;
        for (size_t i = 0; i < 20; ++i)
          Append(results, Generate(model, requests[i], nullptr, {.num_threads = threads}));
        return results;
      });
    }
  }
}

TEST(FloatControl, ScoringIgnoresTheCallers) {
  for (const Model& model : {RandomModel(M8Shape()), DenormalModel()}) {
    const std::vector<ScoreRequest> requests = Texts(model);
    for (const int threads : {1, 3}) {
      ExpectSameUnderAllSettings([&] {
        Results results;
        ScoreAll(model, {.num_threads = threads}, Each(requests),
                 [&](const ScoreRequest&, Score&& score) { Append(results, score); });
        return results;
      });
      ExpectSameUnderAllSettings([&] {
        Results results;
        for (const ScoreRequest& request : requests)
          Append(results, ScoreText(model, request, {.num_threads = threads}));
        return results;
      });
    }
  }
}

// The work inside a step is shared when the model is large enough.
TEST(FloatControl, SharedStepsIgnoreTheCallers) {
  const Model model = RandomModel(ModelShape{Characters("abcdefgh"), 8, 1, 8, 512});
  GenerateRequest request;
  request.prompt = {1, 2, 3};
  request.options.max_chars = 4;
  ExpectSameUnderAllSettings([&] {
    Results results;
    Append(results, Generate(model, request, nullptr, {.num_threads = 3}));
    return results;
  });
}

// Numbers of type F64 are rounded to float when they are read.
TEST(FloatControl, LoadingIgnoresTheCallers) {
  const auto load = [] {
    const Model model = Model::Load(OCTAVO_TEST_DATA "/golden/w33.safetensors");
    EXPECT_EQ(model.storage().type, "F64");
    const std::vector<float>& weights = model.weights().layers[0].c_fc.weight;
    return Results{{}, std::vector<double>(weights.begin(), weights.end())};
  };
  ExpectSameUnderAllSettings(load);
}

// What a callback sets is undone when it returns, so that it poisons neither what is computed after it nor the next
// callback.
TEST(FloatControl, CallbacksLeaveNothingBehind) {
  const uint64_t standard = Control() & ~kRaised;
  const Model model = DenormalModel();
  const std::vector<GenerateRequest> requests = Prompts(model);
  const std::vector<ScoreRequest> texts = Texts(model);
  const auto run = [&](const auto& spoil, int threads) {
    const auto spoiling = [&](auto next) {
      return [&spoil, next]() mutable {
        spoil();
        return next();
      };
    };
    Results results;
    GenerateAll(model, {.num_threads = threads}, spoiling(Each(requests)),
                [&](const GenerateRequest&, Completion&& completion) {
                  spoil();
                  Append(results, completion);
                });
    ScoreAll(model, {.num_threads = threads}, spoiling(Each(texts)), [&](const ScoreRequest&, Score&& score) {
      spoil();
      Append(results, score);
    });
    Append(results, Generate(model, requests[19], [&](std::string_view) { spoil(); }, {.num_threads = threads}));
    return results;
  };
  const Results expected = run([] {}, 1);
  for (const Setting& setting : kSettings) {
    std::atomic<int> num_spoiled = 0;
    const auto spoil = [&] {
      num_spoiled += (Control() & ~kRaised) != standard || std::fegetround() != FE_TONEAREST;
      std::fesetround(setting.rounding);
      SetControl(Control() | setting.flush);
    };
    for (const int threads : {1, 3}) {
      const Results results = run(spoil, threads);
      EXPECT_EQ(results.texts, expected.texts) << "a callback that " << setting.name;
      EXPECT_TRUE(SameBits(results.numbers, expected.numbers)) << "a callback that " << setting.name;
    }
    EXPECT_EQ(num_spoiled, 0) << "a callback that " << setting.name << " met what another had set";
    EXPECT_EQ(Control() & ~kRaised, standard);
    check::Options options;
    options.num_cases = 3;
    for (const check::Row& row : check::Run(options, [&](const check::Row&) { spoil(); })) {
      EXPECT_EQ(row.failure, "") << row.kernel << " on " << row.target << ", a callback that " << setting.name;
    }
  }
}

TEST(FloatControl, ChecksIgnoreTheCallers) {
  check::Options options;
  options.num_cases = 5;
  for (const Setting& setting : kSettings) {
    std::vector<check::Row> rows;
    RunWith(setting, [&] { rows = check::Run(options); });
    for (const check::Row& row : rows) EXPECT_EQ(row.failure, "") << row.kernel << " on " << row.target;
  }
}

}  // namespace
}  // namespace octavo::test
