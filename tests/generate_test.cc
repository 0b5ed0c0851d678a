// Many completions: the same bytes alone and together, in any order and on any number of threads; records of errors; draws by seed.
#include "engine/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/testing/completions.h"
#include "tests/testing/errors.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

GenerateRequest Request(const Model& model, std::string_view prompt, uint64_t max_chars, uint64_t sequence = 0) {
  GenerateRequest request;
  request.prompt = model.vocabulary().Encode(prompt);
  request.options.max_chars = max_chars;
  request.seed = 7;
  request.sequence = sequence;
  return request;
}

// Each completion of `requests` as it is alone.
std::vector<Completion> Alone(const Model& model, const std::vector<GenerateRequest>& requests) {
  std::vector<Completion> completions;
  for (const GenerateRequest& request : requests) completions.push_back(Generate(model, request));
  return completions;
}

// ---- independence ----

TEST(Independence, NeighboursChangeNothing) {
  const Model model = RandomModel(M64Shape());
  std::string long_prompt;
  for (int i = 0; i < 63; ++i) long_prompt += model.vocabulary().text(static_cast<TokenId>((i * 29 + 3) % 65));
  std::vector<GenerateRequest> requests;
  for (const std::string& prompt : {std::string("A"), std::string("ROMEO:"), long_prompt}) {
    requests.push_back(Request(model, prompt, 6));
    requests.back().options.sampling.temperature = 0;
  }
  const std::vector<Completion> alone = Alone(model, requests);
  std::vector<GenerateRequest> reversed(requests.rbegin(), requests.rend());
  std::vector<GenerateRequest> with_more = requests;
  with_more.insert(with_more.begin() + 1, 17, requests[0]);
  for (const int threads : {1, 2}) {  // on one, all are in one panel or two
    const std::vector<Completion> together = RunAll(model, requests, threads),
                                  backwards = RunAll(model, reversed, threads),
                                  many = RunAll(model, with_more, threads);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(Same(together[i], alone[i]));
      EXPECT_TRUE(Same(backwards[2 - i], alone[i]));
    }
    for (size_t i = 0; i < 20; ++i) EXPECT_TRUE(Same(many[i], alone[i < 18 ? 0 : i - 17])) << i;
  }
}

std::vector<GenerateRequest> ThirtySevenRequests(const Model& model) {
  std::vector<GenerateRequest> requests;
  for (uint64_t i = 0; i < 37; ++i) {
    requests.push_back(Request(model, "", 5 + i % 11, i));
    requests.back().prompt = Random(i).Tokens(i % 13, model.vocabulary().size());
  }
  return requests;
}

TEST(Independence, ThreadsAndOrderChangeNothing) {
  const Model model = RandomModel(M8Shape());
  std::vector<GenerateRequest> requests = ThirtySevenRequests(model);
  const std::vector<Completion> alone = Alone(model, requests);
  for (const int threads : {1, 2, 3, 16}) {
    for (int round = 0; round < 20; ++round) {
      const std::vector<Completion> together = RunAll(model, requests, threads);
      for (size_t i = 0; i < 37; ++i) ASSERT_TRUE(Same(together[i], alone[i])) << threads << " threads, request " << i;
      // A few a run.
      for (const size_t batch : {1, 4}) {
        std::vector<Completion> in_turn;
        for (size_t i = 0; i < 37; i += batch) {
          const auto first = requests.begin() + static_cast<std::ptrdiff_t>(i);
          const auto last = first + static_cast<std::ptrdiff_t>(std::min(batch, 37 - i));
          for (Completion& completion : RunAll(model, {first, last}, threads)) in_turn.push_back(std::move(completion));
        }
        ASSERT_EQ(in_turn.size(), 37u);
        for (size_t i = 0; i < 37; ++i) {
          ASSERT_TRUE(Same(in_turn[i], alone[i])) << threads << " threads, " << batch << " a run, request " << i;
        }
      }
    }
  }
  std::reverse(requests.begin(), requests.end());
  const std::vector<Completion> reversed = RunAll(model, requests, 3);
  for (size_t i = 0; i < 37; ++i) EXPECT_TRUE(Same(reversed[36 - i], alone[i]));
  // A part of the run.
  const std::vector<GenerateRequest> part(requests.begin() + 10, requests.begin() + 15);
  const std::vector<Completion> five = RunAll(model, part, 2);
  for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(Same(five[i], reversed[10 + i]));
}

// Requests that share nothing: temperature, cuts, seeds, stops, window rules, prompts and lengths all differ within a panel.
std::vector<GenerateRequest> MixedRequests(const Model& model, size_t count) {
  const std::string letter(model.vocabulary().text(static_cast<TokenId>(model.vocabulary().size() - 1)));
  const std::vector<std::vector<std::string>> stops = {{}, {letter}, {}, {letter + letter, "\n" + letter}};
  std::vector<GenerateRequest> requests;
  for (uint64_t i = 0; i < count; ++i) {
    Random random(i);
    GenerateRequest& request = requests.emplace_back(Request(model, "", random.Between(1, 60), i));
    request.prompt = random.Tokens(random.Below(40), model.vocabulary().size());
    request.seed = random.Below(3);
    request.options.sampling.temperature = std::vector{0.0, 1.0, 1e-30, 0.7, 1.0}[random.Below(5)];
    request.options.sampling.top_k = std::vector<uint64_t>{0, 1, 3, 0, 100'000}[random.Below(5)];
    request.options.sampling.top_p = std::vector{1.0, 0.5, 1.0, 0.93, 1e-9}[random.Below(5)];
    request.options.stops = stops[random.Below(stops.size())];
    request.options.overflow = std::vector{Overflow::kSlide, Overflow::kRestart, Overflow::kStop}[random.Below(3)];
  }
  return requests;
}

TEST(Independence, NeighboursWithOtherOptionsChangeNothing) {
  std::set<Finish> seen;
  for (const Model& model : {RandomModel(M8Shape()), RandomModel(ModdShape())}) {
    // One panel; and more lanes than a group has, so that lanes are used again.
    for (const size_t count : {16, 90}) {
      std::vector<GenerateRequest> requests = MixedRequests(model, count);
      const std::vector<Completion> alone = Alone(model, requests);
      const std::vector<Completion> together = RunAll(model, requests, 1);
      std::reverse(requests.begin(), requests.end());
      const std::vector<Completion> reversed = RunAll(model, requests, 2);
      for (size_t i = 0; i < count; ++i) {
        EXPECT_TRUE(Same(together[i], alone[i])) << "request " << i;
        EXPECT_TRUE(Same(reversed[count - 1 - i], alone[i])) << "request " << i;
        seen.insert(alone[i].finish);
      }
    }
  }
  EXPECT_EQ(seen, (std::set{Finish::kLength, Finish::kStop, Finish::kContext}));
}

// ---- draws ----

TEST(Draws, DependOnSeedAndSequence) {
  const Model model = RandomModel(M8Shape());
  std::set<std::string> texts;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, uint64_t{1} << 63}) {
    for (const uint64_t sequence : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, uint64_t{1} << 63}) {
      GenerateRequest request = Request(model, "abc", 40, sequence);
      request.seed = seed;
      const std::string text = Generate(model, request).text;
      EXPECT_EQ(Generate(model, request).text, text);
      texts.insert(text);
    }
  }
  EXPECT_EQ(texts.size(), 16u);
}

TEST(Draws, ALongerTextBeginsWithTheShorter) {
  const Model model = RandomModel(M8Shape());
  const std::string text = Generate(model, Request(model, "ab", 50)).text;
  for (const uint64_t length : {1, 2, 6, 7, 8, 20, 49}) {
    EXPECT_EQ(Generate(model, Request(model, "ab", length)).text, text.substr(0, length));
  }
}

TEST(Draws, GreedyIgnoresSeeds) {
  const Model model = RandomModel(M8Shape());
  std::set<std::string> texts;
  for (const double temperature : {0.0, -0.0, 1e-30, 1e-320}) {
    for (const uint64_t seed : {1, 2, 3}) {
      GenerateRequest request = Request(model, "abc", 40, seed);
      request.seed = seed;
      request.options.sampling.temperature = temperature;
      texts.insert(Generate(model, request).text);
    }
  }
  EXPECT_EQ(texts.size(), 1u);
}

TEST(Draws, TopKAndTopPReachTheSampler) {
  const Model model = RandomModel(M8Shape());
  GenerateRequest greedy = Request(model, "abc", 40), one = greedy, small = greedy, all = greedy;
  greedy.options.sampling.temperature = 0;
  one.options.sampling.top_k = 1;
  small.options.sampling.top_p = 1e-9;
  EXPECT_EQ(Generate(model, one).text, Generate(model, greedy).text);
  EXPECT_EQ(Generate(model, small).text, Generate(model, greedy).text);
  // Off, and what no vocabulary reaches, also beyond 32 bits.
  for (const uint64_t k : {uint64_t{5}, uint64_t{100'000}, (uint64_t{1} << 31) + 1, (uint64_t{1} << 32) + 1,
                           (uint64_t{1} << 33) + 2, ~uint64_t{0}}) {
    all.options.sampling.top_k = k;
    EXPECT_EQ(Generate(model, all).text, Generate(model, Request(model, "abc", 40)).text) << k;
  }
  EXPECT_NE(Generate(model, greedy).text, Generate(model, all).text);
}

// ---- prompts ----

TEST(Prompts, EmptyReadsTheStartCharacter) {
  const Model model = RandomModel(M8Shape());
  EXPECT_TRUE(Same(Generate(model, Request(model, "", 20)), Generate(model, Request(model, "\n", 20))));
  // Alone, first, last and among others.
  std::vector<GenerateRequest> requests;
  for (const char* prompt : {"", "abc", "", "a", ""}) requests.push_back(Request(model, prompt, 20, requests.size()));
  const std::vector<Completion> alone = Alone(model, requests), together = RunAll(model, requests, 2);
  for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(Same(together[i], alone[i]));
  EXPECT_TRUE(RunAll(model, {}, 2).empty());
}

TEST(Prompts, NoCharactersAskedFor) {
  const Model model = RandomModel(M8Shape());
  for (const char* prompt : {"", "a", "abcabcabcabc"}) {
    bool streamed = false;
    const Completion completion =
        Generate(model, Request(model, prompt, 0), [&](std::string_view) { streamed = true; });
    EXPECT_EQ(completion.text, "");
    EXPECT_EQ(completion.finish, Finish::kLength);
    EXPECT_EQ(completion.num_chars, 0u);
    EXPECT_EQ(completion.log_probability, 0);
    EXPECT_FALSE(streamed);
  }
}

// ---- errors ----

TEST(Errors, PassThroughInOrder) {
  const Model model = RandomModel(M8Shape());
  std::vector<GenerateRequest> requests;
  for (uint64_t i = 0; i < 200; ++i) {
    // Doubles among them.
    requests.push_back(Request(model, "", 1 + i % 5, i / 2));
    requests.back().prompt = Random(i / 2).Tokens(1 + i / 2 % 60, 5);
    requests.back().context = std::make_shared<uint64_t>(i);
    if (i % 50 == 17) requests.back().error = "line " + std::to_string(i) + " is bad";
  }
  const std::vector<Completion> alone = Alone(model, requests), together = RunAll(model, requests, 3);
  for (uint64_t i = 0; i < 200; ++i) {
    EXPECT_TRUE(Same(together[i], alone[i]));
    EXPECT_EQ(together[i].finish == Finish::kError, i % 50 == 17);
    if (i % 50 == 17) {
      EXPECT_EQ(together[i].error, "line " + std::to_string(i) + " is bad");
      EXPECT_EQ(together[i].text, "");
    }
  }
}

// A model whose logits overflow float at its third character: that of `letter` does, upwards or downwards.
Model OverflowingModel(size_t letter, float weight) {
  const Model model = ScriptedModel("\nabc", "abcabcab");
  Weights weights = model.weights();
  weights.lm_head[2 * 4 + letter] = weight;
  // Feature 2 is a spike of 2.6 there and -0.4 elsewhere, where the letter must not become the likeliest.
  if (weight < 0) weights.ln_f.bias[2] = 1;
  return BuildModel(model.config(), model.vocabulary().entries(), std::move(weights));
}

void ExpectErrorAtTheThird(const Model& model) {
  for (const double temperature : {0.0, 1.0}) {
    std::vector<GenerateRequest> requests;
    for (const uint64_t max_chars : {2, 8, 2}) {
      requests.push_back(Request(model, "a", max_chars));
      requests.back().options.sampling.temperature = temperature;
    }
    const std::vector<Completion> completions = RunAll(model, requests, 2);
    EXPECT_EQ(completions[1].finish, Finish::kError);
    EXPECT_NE(completions[1].error.find("not finite at new character 3"), std::string::npos) << completions[1].error;
    EXPECT_EQ(completions[1].text, "ab") << "what was written before stays";
    for (const size_t i : {0, 2}) {
      EXPECT_EQ(completions[i].finish, Finish::kLength) << "others go on";
      EXPECT_EQ(completions[i].text, "ab");
      EXPECT_EQ(completions[i].error, "");
    }
  }
}

TEST(Errors, LogitsThatAreNotFiniteEndTheRecord) {
  ExpectErrorAtTheThird(OverflowingModel(3, 3e38f));
  // One that is drawn by no means: -infinity alone would be no worse than a probability of 0.
  ExpectErrorAtTheThird(OverflowingModel(0, -3e38f));
}

TEST(Errors, NaNInsideOfTheModelIsNoText) {
  Model model = RandomModel(M8Shape());
  Weights weights = model.weights();
  weights.wpe[3 * 16] = NAN;
  const Model broken = BuildModel(model.config(), model.vocabulary().entries(), std::move(weights));
  const Completion completion = Generate(broken, Request(broken, "a", 8));
  EXPECT_EQ(completion.finish, Finish::kError);
  EXPECT_EQ(completion.num_chars, 3u);
}

TEST(Errors, IdsOutsideTheVocabularyAreNamed) {
  const Model model = RandomModel(M8Shape());
  for (const TokenId bad : {-1, 5, 1 << 30}) {
    GenerateRequest request = Request(model, "ab", 5);
    request.prompt[1] = bad;
    const std::string expected = "token 2 is " + std::to_string(bad) + "; expected an id from 0 to 4";
    EXPECT_EQ(Generate(model, request).error, expected);
    const std::vector<Completion> both = RunAll(model, {request, Request(model, "ab", 5)}, 2);
    EXPECT_EQ(both[0].error, expected);
    EXPECT_EQ(both[0].text, "");
    EXPECT_EQ(both[1].num_chars, 5u) << "others go on";
  }
}

TEST(Errors, BadOptionsAreThrown) {
  const Model model = RandomModel(M8Shape());
  GenerateRequest request = Request(model, "a", 5);
  request.options.sampling.temperature = -1;
  EXPECT_TRUE(Fails([&] { Generate(model, request); }, {"temperature is -1"}));
  EXPECT_TRUE(Fails([&] { RunAll(model, {Request(model, "a", 5), request}, 2); }, {"temperature is -1"}));
  request.options.sampling = {1, 0, 0};
  EXPECT_TRUE(Fails([&] { Generate(model, request); }, {"top_p is 0"}));
}

// ---- the pipeline ----

TEST(Pipeline, WhatNextThrowsEndsTheRun) {
  const Model model = RandomModel(M8Shape());
  for (const int threads : {1, 3}) {
    uint64_t given = 0, emitted = 0;
    const auto run = [&] {
      GenerateAll(
          model, {.num_threads = threads},
          [&]() -> std::optional<GenerateRequest> {
            if (given == 40) throw std::runtime_error("the input broke");
            return Request(model, "a", 3, given++);
          },
          [&](const GenerateRequest&, Completion&&) { ++emitted; });
    };
    EXPECT_THROW(run(), std::runtime_error);
    EXPECT_LE(emitted, 40u);
  }
}

TEST(Pipeline, WhatEmitThrowsEndsTheRun) {
  const Model model = RandomModel(M8Shape());
  for (const int threads : {1, 3}) {
    uint64_t given = 0, emitted = 0;
    const auto run = [&] {
      GenerateAll(
          model, {.num_threads = threads},
          [&]() -> std::optional<GenerateRequest> { return Request(model, "a", 3, given++); },
          [&](const GenerateRequest&, Completion&&) {
            if (++emitted == 30) throw std::runtime_error("the disk is full");
          });
    };
    EXPECT_THROW(run(), std::runtime_error);
    EXPECT_EQ(emitted, 30u);
  }
}

// Endless input must not fill the memory: requests are taken only as others leave.
TEST(Pipeline, RequestsInFlightAreBounded) {
  const Model model = RandomModel(M8Shape());
  for (const int threads : {1, 2, 4}) {
    std::atomic<int64_t> given = 0, emitted = 0, most = 0;
    GenerateAll(
        model, {.num_threads = threads},
        [&]() -> std::optional<GenerateRequest> {
          if (given == 5000) return std::nullopt;
          const int64_t in_flight = ++given - emitted;
          most = std::max<int64_t>(most, in_flight);
          return Request(model, "", 1);
        },
        [&](const GenerateRequest&, Completion&&) { ++emitted; });
    EXPECT_EQ(emitted, 5000);
    EXPECT_LE(most, 512 * threads + 1);
  }
}

// next and emit are each called by one thread at a time.
TEST(Pipeline, CallbacksDoNotOverlapThemselves) {
  const Model model = RandomModel(M8Shape());
  std::atomic<int> in_next = 0, in_emit = 0;
  int given = 0;
  GenerateAll(
      model, {.num_threads = 16},
      [&]() -> std::optional<GenerateRequest> {
        EXPECT_EQ(++in_next, 1);
        const bool more = ++given <= 500;
        --in_next;
        return more ? std::optional(Request(model, "a", 2)) : std::nullopt;
      },
      [&](const GenerateRequest&, Completion&&) {
        EXPECT_EQ(++in_emit, 1);
        --in_emit;
      });
}

}  // namespace
}  // namespace octavo::test
