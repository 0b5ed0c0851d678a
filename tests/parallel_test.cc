// Threads that share work: each part once, also inside of a task, and the same bits from a step that is shared.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/forward.h"
#include "engine/generate.h"
#include "engine/parallel.h"
#include "kernels/targets.h"
#include "tests/testing/compare.h"
#include "tests/testing/completions.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

// ---- the team ----

TEST(Team, SharesEachPartOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const Team team(threads);
    for (const size_t count : {0, 1, 2, 3, 5, 7, 8, 9, 16, 31, 64, 65, 1000}) {
      for (const double seconds : {0.0, 19e-6, 20e-6, 50e-6, 1.0}) {
        std::vector<std::atomic<int>> times(count);
        std::atomic<size_t> num_pieces = 0;
        std::mutex mutex;
        std::set<size_t> pieces;
        team.Execute([&] {
          team.Share(count, seconds, [&](size_t piece, size_t begin, size_t end) {
            ++num_pieces;
            for (size_t i = begin; i < end; ++i) ++times[i];
            const std::lock_guard lock(mutex);
            pieces.insert(piece);
          });
        });
        for (size_t i = 0; i < count; ++i) ASSERT_EQ(times[i], 1) << i << " of " << count;
        EXPECT_EQ(pieces.size(), num_pieces) << "each piece has a number of its own";
        EXPECT_LT(*pieces.rbegin(), team.max_pieces());
        EXPECT_LE(num_pieces, seconds < 20e-6 ? 1 : std::max<size_t>(count, 1)) << "what is short stays in one piece";
        if (threads > 1 && seconds == 1.0 && count >= 64) {
          EXPECT_GE(num_pieces, static_cast<size_t>(threads));
        }
      }
    }
  }
}

TEST(Team, SharesInsideOfGrow) {
  for (const int threads : {2, 3, 5}) {
    const Team team(threads);
    for (size_t count = 1; count <= static_cast<size_t>(threads); ++count) {
      std::vector<std::atomic<int>> times(count * 100);
      std::atomic<size_t> inside = 0;
      team.Grow(count, [&](size_t i, const auto& grow) {
        grow();
        // They wait for each other: each has a thread of its own.
        for (++inside; inside < count;) std::this_thread::yield();
        for (int round = 0; round < 20; ++round) {
          team.Share(100, 1.0, [&](size_t, size_t begin, size_t end) {
            for (size_t k = begin; k < end; ++k) ++times[i * 100 + k];
          });
        }
      });
      for (const std::atomic<int>& number : times) ASSERT_EQ(number, 20);
    }
  }
}

// ---- work shared inside of a step ----

// Products of 256 · 768 and more, attention of 8 heads over 64 positions: all of them are worth sharing.
ModelShape WideShape() { return {Characters("\nabcdefg"), 64, 2, 8, 256}; }

// Logits of `count` rows of a group of panels: what stands in the others has no meaning.
void AppendRows(const float* panels, size_t count, size_t vocabulary, std::vector<float>& out) {
  for (size_t row = 0; row < count; ++row) {
    const float* from = panels + row / kPanelRows * kPanelRows * vocabulary + row % kPanelRows;
    for (size_t v = 0; v < vocabulary; ++v) out.push_back(from[v * kPanelRows]);
  }
}

std::vector<float> ReadText(const Model& model, const Team* team, KvPrecision kv, const std::vector<TokenId>& text) {
  TextPass pass(model, team, kv);
  pass.Read(text, 0);
  std::vector<float> logits;
  for (size_t begin = 0; begin < text.size(); begin += kPanelRows) {
    AppendRows(pass.Logits(begin / kPanelRows), std::min(kPanelRows, text.size() - begin), model.vocabulary().size(),
               logits);
  }
  return logits;
}

// Lanes that stand at different positions, the first ones behind a text that was read in one piece.
std::vector<float> WriteSteps(const Model& model, const Team* team, KvPrecision kv, const std::vector<TokenId>& text,
                              size_t num_live) {
  const auto context = static_cast<int32_t>(model.config().context_length);
  StepPass pass(model, NumPanels(num_live), team, kv);
  TextPass reader(model, team, kv);
  std::vector<int32_t> tokens(pass.num_lanes()), positions(pass.num_lanes());
  for (size_t lane = 0; lane < std::min<size_t>(num_live, 20); ++lane) {
    const size_t count = 1 + lane * 7 % 60;
    reader.Read(std::span(text).first(count), count - 1);
    pass.Load(lane, reader, count);
    positions[lane] = static_cast<int32_t>(count);
  }
  std::vector<float> logits;
  for (size_t step = 0; step < 12; ++step) {
    for (size_t lane = 0; lane < num_live; ++lane) {
      if (positions[lane] == context) positions[lane] = 0;
      tokens[lane] = text[(step * 7 + lane) % text.size()];
    }
    AppendRows(pass.Step(tokens.data(), positions.data(), num_live), num_live, model.vocabulary().size(), logits);
    for (size_t lane = 0; lane < num_live; ++lane) ++positions[lane];
  }
  return logits;
}

void ExpectSameBitsWithTeams(const Model& model, KvPrecision kv) {
  const std::vector<TokenId> text = Random(6).Tokens(64, model.vocabulary().size()), two = {text[0], text[1]};
  const std::vector<float> whole = ReadText(model, nullptr, kv, text), part = ReadText(model, nullptr, kv, two);
  for (const int threads : {1, 2, 4}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    const Team team(threads);
    team.Execute([&] {
      EXPECT_TRUE(SameBits(ReadText(model, &team, kv, text), whole));
      EXPECT_TRUE(SameBits(ReadText(model, &team, kv, two), part));
    });
  }
  for (const size_t num_live : {1, 5, 37}) {
    const std::vector<float> alone = WriteSteps(model, nullptr, kv, text, num_live);
    for (const int threads : {1, 2, 4}) {
      SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(num_live) + " lanes");
      const Team team(threads);
      team.Execute([&] { EXPECT_TRUE(SameBits(WriteSteps(model, &team, kv, text, num_live), alone)); });
    }
  }
}

// Sanitizers look at the threads, which are the same on every target.
std::vector<std::string> SharingTargets() {
#ifdef OCTAVO_TEST_SANITIZED
  return {CurrentTarget()};
#else
  return RunnableTargets();
#endif
}

TEST(Sharing, GivesTheSameBits) {
  const Model model = RandomModel(WideShape());
  for (const std::string& target : SharingTargets()) {
    EXPECT_TRUE(UseTarget(target));
    for (const KvPrecision kv : {KvPrecision::kF32, KvPrecision::kBf16}) {
      SCOPED_TRACE(target + (kv == KvPrecision::kF32 ? ", f32" : ", bf16"));
      ExpectSameBitsWithTeams(model, kv);
    }
  }
  UseBestTarget();
}

// More than 10^6 weights, so that a group has four panels; fewer and more texts than threads.
TEST(Sharing, WritesTheSameTexts) {
  const Model model = RandomModel(WideShape());
  std::vector<GenerateRequest> requests;
  for (const size_t count : {1, 3, 80}) {
    for (size_t i = requests.size(); i < count; ++i) {
      GenerateRequest& request = requests.emplace_back();
      request.prompt = Random(i).Tokens(i * 7 % 40, model.vocabulary().size());
      request.options.max_chars = 12;
      request.sequence = i;
    }
    for (const KvPrecision kv : {KvPrecision::kF32, KvPrecision::kBf16}) {
      const std::vector<Completion> expected = RunAll(model, requests, 1, kv);
      for (const int threads : {2, 3, 16}) {
        const std::vector<Completion> completions = RunAll(model, requests, threads, kv);
        ASSERT_EQ(completions.size(), count);
        for (size_t i = 0; i < count; ++i) {
          EXPECT_TRUE(Same(completions[i], expected[i])) << threads << " threads, " << count << " texts, number " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace octavo::test
