// Matrix products at the shapes of models, each and all of a model's together: the mean over them weighted by FLOP. Other libraries' beside them.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <stdexcept>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "bench/peers.h"
#include "kernels/matmul.h"
#include "kernels/panel.h"
#include "kernels/reference/matmul.h"

namespace octavo::bench {
namespace {

struct Matrix {
  const char* name;
  size_t inputs, outputs, times;  // how often a pass through the model uses one of this shape
  Epilogue epilogue;
};

std::vector<Matrix> Matrices(const Shape& shape) {
  const size_t width = shape.width, layers = shape.num_layers;
  return {{"c_attn", width, 3 * width, layers, Epilogue::kStore},
          {"attn_proj", width, width, layers, Epilogue::kAddResidual},
          {"c_fc", width, 4 * width, layers, Epilogue::kStore},
          {"mlp_proj", 4 * width, width, layers, Epilogue::kAddResidual},
          {"lm_head", width, shape.vocabulary_size, 1, Epilogue::kStore}};
}

Work WorkOf(const Matrix& m, size_t rows) {
  const double weights = static_cast<double>(m.inputs * m.outputs + m.outputs),
               x = static_cast<double>(rows * m.inputs), out = static_cast<double>(rows * m.outputs);
  return {.flop = 2.0 * static_cast<double>(rows * m.inputs * m.outputs),
          .bytes = sizeof(float) * (weights + x + (m.epilogue == Epilogue::kAddResidual ? out : 0)),
          .working_set_bytes = sizeof(float) * (weights + x + out)};
}

// Inputs and outputs of one product.
struct Product {
  Product(const Matrix& m, size_t rows)
      : matrix(m.inputs, m.outputs),
        x(RandomFloats(PanelFloats(rows, m.inputs))),
        out(PanelFloats(rows, m.outputs)),
        epilogue(m.epilogue),
        num_rows(rows) {}
  void Run() { MatMul(x.data(), num_rows, matrix.packed.matrix(), epilogue, out.data()); }

  RandomMatrix matrix;
  AlignedFloats x, out;
  Epilogue epilogue;
  size_t num_rows;
};

// The same as row-major tables, for the scalar reference and for peers.
struct Tables {
  Tables(const Matrix& m, size_t rows)
      : weight(RandomFloats(m.inputs * m.outputs, 1.7f / std::sqrt(static_cast<float>(m.inputs)))),
        bias(m.outputs),
        x(RandomFloats(rows * m.inputs)),
        out(rows * m.outputs) {}

  AlignedFloats weight, bias, x, out;
};

std::function<void()> MakeProduct(const Matrix& m, size_t rows) {
  auto product = std::make_shared<Product>(m, rows);
  return [product] { product->Run(); };
}

std::function<void()> MakeReference(const Matrix& m, size_t rows) {
  auto tables = std::make_shared<Tables>(m, rows);
  return [=] {
    reference::MatMul(tables->x.data(), rows, m.inputs, tables->weight.data(), tables->bias.data(), m.outputs,
                      tables->out.data());
  };
}

std::function<void()> MakePeer(const Peer& peer, const Matrix& m, size_t rows) {
  auto tables = std::make_shared<Tables>(m, rows);
  const std::function<void()> run =
      peer.make({rows, m.inputs, m.outputs, tables->x.data(), tables->weight.data(), tables->out.data()});
  run();
  AlignedFloats expected(tables->out.size());
  reference::MatMul(tables->x.data(), rows, m.inputs, tables->weight.data(), tables->bias.data(), m.outputs,
                    expected.data());
  // Terms are below 1.7 / √inputs, sums of them below 1.7 √inputs.
  const double bound = static_cast<double>(m.inputs) * 0x1p-24 * 1.7 * std::sqrt(static_cast<double>(m.inputs));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(static_cast<double>(tables->out[i]) - static_cast<double>(expected[i]));
    if (!(error <= bound))
      throw std::runtime_error(fmt::format("{} is wrong by {} at element {}", peer.name, error, i));
  }
  return [tables, run] { run(); };
}

// One after another: a model's products, or the references of them.
Make MakeAll(const Shape& shape, size_t rows, std::function<void()> (*make)(const Matrix&, size_t)) {
  return [=] {
    std::vector<std::function<void()>> products;
    for (const Matrix& m : Matrices(shape)) {
      for (size_t i = 0; i < m.times; ++i) products.push_back(make(m, rows));
    }
    return [products] {
      for (const auto& product : products) product();
    };
  };
}

void RegisterShape(const Shape& shape, size_t rows) {
  const std::string name = fmt::format("{}-{}", shape.name, rows);
  Work total;
  for (const Matrix& m : Matrices(shape)) {
    const Work work = WorkOf(m, rows);
    total.flop += static_cast<double>(m.times) * work.flop;
    total.bytes += static_cast<double>(m.times) * work.bytes;
    total.working_set_bytes += static_cast<double>(m.times) * work.working_set_bytes;
    const Kernel kernel = {.family = "matmul",
                           .op = m.name,
                           .shape = name,
                           .work = work,
                           .make = [=] { return MakeProduct(m, rows); },
                           .reference = [=] { return MakeReference(m, rows); }};
    RegisterKernel(kernel);
    for (const Peer& peer : Peers()) {
      if (peer.make) RegisterPeer(kernel, peer.name, [=] { return MakePeer(peer, m, rows); });
    }
  }
  constexpr double kMostReferenceFlop = 2e8;  // 0.2 s
  const Kernel all = {.family = "matmul",
                      .op = "all",
                      .shape = name,
                      .work = total,
                      .make = MakeAll(shape, rows, MakeProduct),
                      .reference = total.flop <= kMostReferenceFlop ? MakeAll(shape, rows, MakeReference) : Make()};
  RegisterKernel(all);
  if (shape.width == kTiny.width) RegisterCold(all);
}

}  // namespace

void RegisterMatMul() {
  for (const size_t rows : {32, 64}) RegisterShape(kTiny, rows);
  RegisterShape(kSmall, 64);
  RegisterShape(kBaby, 64);
  // One sequence: weights stream from memory, outputs in the lanes.
  RegisterShape(kBaby, 1);
  RegisterShape(kOdd, 19);
  const Matrix c_fc = {"c_fc", kTiny.width, 4 * kTiny.width, 1, Epilogue::kGeluTanh};
  RegisterKernel({.family = "matmul", .op = "c_fc_gelu", .shape = "tiny-64", .work = WorkOf(c_fc, 64), .make = [=] {
                    return MakeProduct(c_fc, 64);
                  }});
}

}  // namespace octavo::bench
