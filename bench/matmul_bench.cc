// Matrix products at the shapes of models, each and all of a model's together: the mean over them weighted by FLOP.
#include <fmt/format.h>

#include <memory>

#include "bench/benchmarks.h"
#include "bench/measure.h"
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

double Flop(const Matrix& m, size_t rows) { return 2.0 * static_cast<double>(rows * m.inputs * m.outputs); }

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

void RegisterShape(const Shape& shape, size_t rows) {
  const std::string name = fmt::format("{}-{}", shape.name, rows);
  double total = 0;
  for (const Matrix& m : Matrices(shape)) {
    total += static_cast<double>(m.times) * Flop(m, rows);
    RegisterKernel("matmul", m.name, name, {.flop = Flop(m, rows)}, [=] {
      auto product = std::make_shared<Product>(m, rows);
      return [product] { product->Run(); };
    });
  }
  RegisterKernel("matmul", "all", name, {.flop = total}, [=] {
    auto products = std::make_shared<std::vector<std::unique_ptr<Product>>>();
    for (const Matrix& m : Matrices(shape)) {
      for (size_t i = 0; i < m.times; ++i) products->push_back(std::make_unique<Product>(m, rows));
    }
    return [products] {
      for (const auto& product : *products) product->Run();
    };
  });
}

}  // namespace

void RegisterMatMul() {
  for (const size_t rows : {32, 64}) RegisterShape(kTiny, rows);
  RegisterShape(kSmall, 64);
  RegisterShape(kBaby, 64);
  // One sequence: weights stream from memory, outputs in the lanes.
  RegisterShape(kBaby, 1);
  const Matrix c_fc = {"c_fc", kTiny.width, 4 * kTiny.width, 1, Epilogue::kGeluTanh};
  RegisterKernel("matmul", "c_fc_gelu", "tiny-64", {.flop = Flop(c_fc, 64)}, [=] {
    auto product = std::make_shared<Product>(c_fc, 64);
    return [product] { product->Run(); };
  });
  RegisterReference("matmul", "c_fc", "tiny-32", {.flop = Flop(c_fc, 32)}, [=] {
    auto product = std::make_shared<Product>(c_fc, 32);
    return [product, c_fc] {
      reference::MatMul(product->x.data(), 32, c_fc.inputs, product->matrix.weight.data(), product->matrix.bias.data(),
                        c_fc.outputs, product->out.data());
    };
  });
}

}  // namespace octavo::bench
