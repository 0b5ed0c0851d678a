// Cases of the matrix kernels: matmul and qkv.
#include <algorithm>
#include <deque>
#include <iterator>

#include "engine/check/case.h"
#include "kernels/math_bounds.h"
#include "kernels/matmul.h"
#include "kernels/qkv.h"
#include "kernels/reference/activation.h"
#include "kernels/reference/matmul.h"
#include "kernels/strict_math.h"

namespace octavo::check {
namespace {

// A random matrix in guarded memory, packed and plain.
struct RandomMatrix {
  RandomMatrix(Random& random, size_t inputs, size_t outputs)
      : anywhere(AnyAlignment(random)),
        weight(random.Hostile(inputs * outputs), anywhere),
        bias(random.Hostile(outputs), anywhere),
        packed(PackedFloats(inputs, outputs), kPanelAlignment) {
    PackMatrix(weight.data(), inputs, outputs, packed.data());
    matrix = {packed.data(), bias.data(), inputs, outputs};
  }

  // Exact product of a row, and the bound of its error, by output.
  void Expect(const std::vector<double>& x, std::vector<double>& y, std::vector<double>& bound) const {
    const size_t inputs = matrix.num_inputs, outputs = matrix.num_outputs;
    y.resize(outputs);
    bound.assign(outputs, 0);
    reference::MatMul(x.data(), 1, inputs, weight.data(), bias.data(), outputs, y.data());
    for (size_t n = 0; n < outputs; ++n) {
      double sum = std::abs(static_cast<double>(bias[n]));
      for (size_t k = 0; k < inputs; ++k) sum += std::abs(x[k] * static_cast<double>(weight[k * outputs + n]));
      const double roundings = static_cast<double>(inputs) + kMatMulBound;
      bound[n] = TargetSlack() * roundings * (kRoundoff * sum + 0x1p-149);
    }
  }

  size_t anywhere;  // before what is placed by it
  Guarded<float> weight, bias, packed;
  PackedMatrix matrix;
};

ActivationKind KindOf(Epilogue epilogue) {
  return epilogue == Epilogue::kGeluErf    ? ActivationKind::kGeluErf
         : epilogue == Epilogue::kGeluTanh ? ActivationKind::kGeluTanh
                                           : ActivationKind::kRelu;
}

// What the epilogue makes of the product and of its bound; `before` is the output's old value.
void ApplyEpilogue(Epilogue epilogue, double before, double& y, double& bound) {
  if (epilogue == Epilogue::kStore) return;
  if (epilogue == Epilogue::kAddResidual) {
    y += before;
    bound += kRoundoff * (std::abs(y) + bound) + 0x1p-149;
    return;
  }
  constexpr double kSteepest = 1.13;  // largest slope of either GELU
  const double input = y;
  reference::Activate(KindOf(epilogue), &input, 1, &y);
  bound = kSteepest * bound +
          (epilogue == Epilogue::kRelu ? 0 : kGeluBound * kRoundoff * (std::abs(input) + bound) + 0x1p-126);
}

constexpr Epilogue kEpilogues[] = {Epilogue::kStore, Epilogue::kAddResidual, Epilogue::kGeluErf, Epilogue::kGeluTanh,
                                   Epilogue::kRelu};

// Row `row` of x again, as row 0 of `rows` rows whose others are new: the same bits.
void CheckRowElsewhere(Random& random, Panels& x, Panels& before, Panels& out, const RandomMatrix& m, Epilogue epilogue,
                       size_t rows, Outcome& outcome) {
  const size_t row = random.Below(x.num_rows());
  Panels other(random.Floats(rows * x.num_features()), rows, x.num_features());
  Panels result(random.Floats(rows * out.num_features()), rows, out.num_features());
  for (size_t k = 0; k < x.num_features(); ++k) other.at(0, k) = x.at(row, k);
  for (size_t n = 0; n < out.num_features(); ++n) result.at(0, n) = before.at(row, n);
  MatMul(other.data(), rows, m.matrix, epilogue, result.data());
  for (size_t n = 0; n < out.num_features(); ++n) {
    outcome.RequireSameBits(result.at(0, n), out.at(row, n), "a row among others gives other bits");
  }
  outcome.Require(result.Intact(), "wrote outside");
}

}  // namespace

Outcome CheckMatMul(Random& random) {
  Outcome outcome;
  const size_t rows = random.Size(129), inputs = random.Size(140), outputs = random.Size(140);
  const Epilogue epilogue = kEpilogues[random.Below(std::size(kEpilogues))];
  const RandomMatrix m(random, inputs, outputs);
  Panels x(random.Hostile(rows * inputs), rows, inputs);
  const std::vector<float> old = random.Hostile(rows * outputs);
  Panels before(old, rows, outputs), out(old, rows, outputs);
  MatMul(x.data(), rows, m.matrix, epilogue, out.data());
  std::vector<double> y, bound;
  for (size_t r = 0; r < rows; ++r) {
    m.Expect(x.Row(r), y, bound);
    for (size_t n = 0; n < outputs; ++n) {
      ApplyEpilogue(epilogue, static_cast<double>(before.at(r, n)), y[n], bound[n]);
      outcome.Compare(static_cast<double>(out.at(r, n)), y[n], bound[n], "product differs from the reference");
      outcome.Record(out.at(r, n));
    }
  }
  outcome.Require(x.Intact() && out.Intact(), "wrote outside");
  CheckRowElsewhere(random, x, before, out, m, epilogue, random.Between(1, kFewRows), outcome);
  CheckRowElsewhere(random, x, before, out, m, epilogue, random.Between(kFewRows + 1, 70), outcome);
  return outcome;
}

Outcome CheckQkv(Random& random) {
  Outcome outcome;
  const bool large = random.Below(32) == 0;
  const size_t rows = random.Size(large ? 20 : 70), heads = large ? 1 : random.Between(1, 6),
               size = large ? kLargeHeads[random.Below(std::size(kLargeHeads))] : random.Size(34), width = heads * size;
  const RandomMatrix m(random, width, 3 * width);
  Panels x(random.Hostile(rows * width), rows, width), table(rows, 3 * width);
  MatMul(x.data(), rows, m.matrix, Epilogue::kStore, table.data());
  // Heads with gaps between them, which must stay NaN.
  const size_t slots = random.Between(1, 5), slot = random.Below(slots);
  const size_t head_stride = slots * size * kPanelRows, panel_stride = heads * head_stride;
  std::deque<Guarded<float>> parts;

  HeadLayout layouts[3];
  for (HeadLayout& layout : layouts) {
    Guarded<float>& part = parts.emplace_back(NumPanels(rows) * panel_stride, kPanelAlignment);
    layout = {part.data() + slot * size * kPanelRows, panel_stride, head_stride};
  }
  Qkv(x.data(), rows, m.matrix, heads, size, layouts[0], layouts[1], layouts[2]);
  std::vector<double> y, bound;
  for (size_t r = 0; r < rows; ++r) {
    m.Expect(x.Row(r), y, bound);
    for (size_t n = 0; n < 3 * width; ++n) {
      const HeadLayout& layout = layouts[n / width];
      const size_t head = n % width / size, i = n % size;
      const float value =
          layout.at[r / kPanelRows * panel_stride + head * head_stride + i * kPanelRows + r % kPanelRows];
      outcome.Compare(static_cast<double>(value), y[n], bound[n], "product differs from the reference");
      outcome.RequireSameBits(value, table.at(r, n), "not the bits of the plain product");
      outcome.Record(value);
    }
  }
  for (const Guarded<float>& part : parts) {
    for (size_t i = 0; i < part.size(); ++i) {
      const bool gap = i / (size * kPanelRows) % slots != slot;
      if (gap) outcome.Require(std::isnan(part[i]), "wrote between the heads");
    }
    outcome.Require(part.Intact(), "wrote outside");
  }
  return outcome;
}

}  // namespace octavo::check
