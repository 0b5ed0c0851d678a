// Cases of the row-wise kernels: embed, layer norm, activation, softmax.
#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/check/case.h"
#include "kernels/activation.h"
#include "kernels/embed.h"
#include "kernels/layer_norm.h"
#include "kernels/math_bounds.h"
#include "kernels/reference/activation.h"
#include "kernels/reference/layer_norm.h"
#include "kernels/reference/softmax.h"
#include "kernels/softmax.h"
#include "kernels/strict_math.h"

namespace octavo::check {
namespace {

// What a result below the smallest normal float may be off: denormal inputs and underflow.
constexpr double kUnderflow = 0x1p-126;

// A row with one number that is not finite, of any kind and anywhere, has no log-probability, whichever id is asked for; its neighbours keep
// theirs.
void CheckNotFinite(Random& random, Panels& x, const Guarded<int32_t>& ids, const Guarded<float>& chosen,
                    Outcome& outcome) {
  static constexpr float kKinds[] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                                     std::numeric_limits<float>::quiet_NaN()};
  const size_t rows = x.num_rows(), count = x.num_features(), bad = random.Below(rows);
  Guarded<float> again(ids.size());
  for (const float kind : kKinds) {
    float& at = x.at(bad, random.Below(count));
    const float before = std::exchange(at, kind);
    LogProbabilityOf(x.data(), rows, count, ids.data(), again.data());
    at = before;
    for (size_t r = 0; r < rows; ++r) {
      if (r != bad) outcome.RequireSameBits(again[r], chosen[r], "a row that is not finite disturbs its neighbours");
    }
    outcome.Require(std::isnan(again[bad]), "a row that is not finite has a log-probability");
  }
  outcome.Require(again.Intact(), "wrote outside");
}

// Row `row` of x again, alone and among 15 others: the same bits.
void CheckSoftmaxRowElsewhere(Random& random, Panels& x, size_t row, Panels& p, Panels& log_p, Outcome& outcome) {
  const size_t count = x.num_features();
  for (const size_t rows : {size_t{1}, kPanelRows}) {
    const size_t at = random.Below(rows);
    Panels other(random.Hostile(rows * count, 60), rows, count), other_p(rows, count), other_log_p(rows, count);
    for (size_t i = 0; i < count; ++i) other.at(at, i) = x.at(row, i);
    const size_t anywhere = AnyAlignment(random);
    const Guarded<int32_t> ids(random.Tokens(kPanelRows, count), anywhere);
    Guarded<float> chosen(kPanelRows, anywhere);
    Softmax(other.data(), rows, count, other_p.data());
    LogSoftmax(other.data(), rows, count, other_log_p.data());
    LogProbabilityOf(other.data(), rows, count, ids.data(), chosen.data());
    for (size_t i = 0; i < count; ++i) {
      outcome.RequireSameBits(other_p.at(at, i), p.at(row, i), "a row's softmax hangs on its neighbours");
      outcome.RequireSameBits(other_log_p.at(at, i), log_p.at(row, i), "a row's log-softmax hangs on its neighbours");
    }
    outcome.RequireSameBits(chosen[at], log_p.at(row, static_cast<size_t>(ids[at])),
                            "a row's log-probability hangs on its neighbours");
  }
}

}  // namespace

Outcome CheckEmbed(Random& random) {
  Outcome outcome;
  const size_t rows = random.Size(70), width = random.Size(140), vocabulary = random.Between(1, 70),
               context = random.Between(1, 70), anywhere = AnyAlignment(random);
  const Guarded<float> tokens_table(random.Hostile(vocabulary * width), anywhere),
      positions_table(random.Hostile(context * width), anywhere);
  const size_t padded = NumPanels(rows) * kPanelRows;
  const Guarded<int32_t> tokens(random.Tokens(padded, vocabulary), anywhere),
      positions(random.Tokens(padded, context), anywhere);
  Panels out(rows, width);
  Embed(tokens.data(), positions.data(), rows, tokens_table.data(), positions_table.data(), width, out.data());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t f = 0; f < width; ++f) {
      const float expected = tokens_table[static_cast<size_t>(tokens[r]) * width + f] +
                             positions_table[static_cast<size_t>(positions[r]) * width + f];
      outcome.RequireSameBits(out.at(r, f), expected, "embedding is not the rounded sum");
      outcome.Record(out.at(r, f));
    }
  }
  outcome.Require(out.Intact(), "wrote outside");
  return outcome;
}

Outcome CheckLayerNorm(Random& random) {
  Outcome outcome;
  const size_t rows = random.Size(40), width = random.Size(140), anywhere = AnyAlignment(random);
  const float epsilon = kEpsilons[random.Below(std::size(kEpsilons))];
  Panels x(random.Hostile(rows * width, random.Bits() % 2 ? 1 : 100), rows, width), out(rows, width);
  const Guarded<float> gain(random.Floats(width, -2, 2), anywhere), bias(random.Floats(width), anywhere);
  LayerNorm(x.data(), rows, width, gain.data(), bias.data(), epsilon, out.data());
  std::vector<double> expected(width);
  for (size_t r = 0; r < rows; ++r) {
    const std::vector<double> row = x.Row(r);
    reference::LayerNorm(row.data(), 1, width, gain.data(), bias.data(), epsilon, expected.data());
    const LayerNormErrors errors(row.data(), width, epsilon);
    for (size_t f = 0; f < width; ++f) {
      const double bound = errors.Bound(row[f], static_cast<double>(gain[f]), expected[f]) * TargetSlack() + kUnderflow;
      outcome.Compare(static_cast<double>(out.at(r, f)), expected[f], bound, "layer norm differs from the reference");
      outcome.Record(out.at(r, f));
    }
  }
  // A row alone, with other neighbours, in place.
  Panels alone(1, width);
  const size_t r = random.Below(rows);
  for (size_t f = 0; f < width; ++f) alone.at(0, f) = x.at(r, f);
  LayerNorm(alone.data(), 1, width, gain.data(), bias.data(), epsilon, alone.data());
  for (size_t f = 0; f < width; ++f)
    outcome.RequireSameBits(alone.at(0, f), out.at(r, f), "a row alone gives other bits");
  outcome.Require(x.Intact() && out.Intact() && alone.Intact(), "wrote outside");
  return outcome;
}

Outcome CheckActivation(Random& random) {
  Outcome outcome;
  const size_t count = random.Size(300), x_place = AnyAlignment(random), out_place = AnyAlignment(random);
  const Guarded<float> x(random.Hostile(count, random.Bits() % 2 ? 4 : 40), x_place);
  for (const ActivationKind kind : {ActivationKind::kGeluErf, ActivationKind::kGeluTanh, ActivationKind::kRelu}) {
    Guarded<float> out(count, out_place);
    Activate(kind, x.data(), count, out.data());
    for (size_t i = 0; i < count; ++i) {
      const double input = static_cast<double>(x[i]);
      double expected = 0;
      reference::Activate(kind, &input, 1, &expected);
      const double bound = kind == ActivationKind::kRelu ? 0 : kGeluBound * kRoundoff * std::abs(input) + kUnderflow;
      outcome.Compare(static_cast<double>(out[i]), expected, bound, "activation differs from the reference");
      outcome.Record(out[i]);
    }
    outcome.Require(out.Intact(), "wrote outside");
    // One number alone, and among others at another place of the vector.
    const size_t i = random.Below(count), at = random.Below(40);
    std::vector<float> others = random.Hostile(at + 1 + random.Below(40), 40);
    others[at] = x[i];
    float alone = 0;
    Activate(kind, &x[i], 1, &alone);
    Activate(kind, others.data(), others.size(), others.data());
    outcome.RequireSameBits(alone, out[i], "a number alone gives other bits");
    outcome.RequireSameBits(others[at], out[i], "a number among others gives other bits");
  }
  return outcome;
}

Outcome CheckSoftmax(Random& random) {
  Outcome outcome;
  const size_t rows = random.Size(40), count = random.Size(140), anywhere = AnyAlignment(random);
  Panels x(random.Hostile(rows * count, random.Bits() % 2 ? 3 : 60), rows, count), p(rows, count), log_p(rows, count);
  Softmax(x.data(), rows, count, p.data());
  LogSoftmax(x.data(), rows, count, log_p.data());
  const Guarded<int32_t> ids(random.Tokens(NumPanels(rows) * kPanelRows, count), anywhere);
  Guarded<float> chosen(ids.size(), anywhere);
  LogProbabilityOf(x.data(), rows, count, ids.data(), chosen.data());
  std::vector<double> expected(count), expected_log(count);
  for (size_t r = 0; r < rows; ++r) {
    const std::vector<double> row = x.Row(r);
    reference::Softmax(row.data(), 1, count, expected.data());
    reference::LogSoftmax(row.data(), 1, count, expected_log.data());
    const double largest = *std::max_element(row.begin(), row.end());
    double mean_distance = 0;  // Σ p |x - largest|: what rounding the differences does to the sum
    for (size_t i = 0; i < count; ++i) mean_distance += expected[i] * (largest - row[i]);
    const double sum_error = static_cast<double>(count) + kSoftmaxBound + mean_distance;
    for (size_t i = 0; i < count; ++i) {
      const double distance = largest - row[i];
      outcome.Compare(static_cast<double>(p.at(r, i)), expected[i],
                      TargetSlack() * (sum_error + distance) * kRoundoff * expected[i] + kExpUnderflow,
                      "softmax differs from the reference");
      const double log_bound = TargetSlack() * (sum_error + distance + 6 * std::abs(expected_log[i])) * kRoundoff;
      outcome.Compare(static_cast<double>(log_p.at(r, i)), expected_log[i], log_bound,
                      "log-softmax differs from the reference");
      outcome.Record(p.at(r, i));
    }
    outcome.RequireSameBits(chosen[r], log_p.at(r, static_cast<size_t>(ids[r])),
                            "log-probability is not log-softmax's");
    outcome.Record(chosen[r]);
  }
  CheckSoftmaxRowElsewhere(random, x, random.Below(rows), p, log_p, outcome);
  CheckNotFinite(random, x, ids, chosen, outcome);
  outcome.Require(p.Intact() && log_p.Intact() && chosen.Intact(), "wrote outside");
  return outcome;
}

}  // namespace octavo::check
