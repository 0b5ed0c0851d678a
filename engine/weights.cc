// Names, orientations, ties and biases of real files resolved into Weights; see weights.h.
#include "engine/weights.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/fail.h"
#include "engine/utf8.h"

namespace octavo {
namespace {

std::string_view StripPrefixes(std::string_view name) {
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view prefix : {"transformer.", "_orig_mod.", "module."}) {
      if (!name.starts_with(prefix)) continue;
      name.remove_prefix(prefix.size());
      again = true;
    }
  }
  return name;
}

// GPT-2 files carry the causal mask as a buffer beside the weights.
bool IsMask(std::string_view name) { return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"); }

std::vector<float> Transposed(const std::vector<float>& matrix, size_t rows, size_t columns) {
  std::vector<float> out(matrix.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) out[c * rows + r] = matrix[r * columns + c];
  }
  return out;
}

// Bytes of all parameters as floats; as floating point, since hostile configurations overflow any integer.
double WantedBytes(const ModelConfig& config) {
  const double width = static_cast<double>(config.width);
  const double layer = width * (4 * width + 2 * static_cast<double>(config.inner_width));
  return 4 * (width * static_cast<double>(config.vocabulary_size + config.context_length) +
              static_cast<double>(config.num_layers) * layer);
}

class Gatherer {
 public:
  Gatherer(const std::vector<Tensor>& tensors, const ModelConfig& config, std::string_view where, StorageInfo& info)
      : config_(config), where_(where), info_(info) {
    for (const Tensor& tensor : tensors) {
      const std::string_view name = StripPrefixes(tensor.name);
      if (IsMask(name)) continue;
      const auto [found, inserted] = tensors_.emplace(name, &tensor);
      if (!inserted) {
        Fail("{}: tensors {} and {} are both {}", where_, Quote(found->second->name), Quote(tensor.name), Quote(name));
      }
    }
  }

  Weights Gather() {
    // Shapes are checked tensor by tensor below, before anything is allocated; this only says it in bytes when nothing can fit.
    double stored = 0;
    for (const auto& [name, tensor] : tensors_) stored += static_cast<double>(tensor->data.size());
    if (WantedBytes(config_) > 8 * stored) {
      Fail("{}: a model of this configuration takes {:.4g} bytes; the file holds {:.0f} bytes of tensors", where_,
           WantedBytes(config_), stored);
    }
    DecideOrientation();
    DecideBiases();
    Weights weights;
    weights.wpe = Take("wpe.weight", {config_.context_length, config_.width});
    GatherHead(weights);
    weights.layers.resize(config_.num_layers);
    for (size_t i = 0; i < config_.num_layers; ++i) GatherLayer(fmt::format("h.{}.", i), weights.layers[i]);
    weights.ln_f = TakeNorm("ln_f");
    RefuseLeftovers();
    info_.type = types_.size() == 1 ? *types_.begin() : fmt::format("mixed ({})", fmt::join(types_, ", "));
    return weights;
  }

 private:
  const Tensor* Find(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second;
  }

  const Tensor& Require(const std::string& name) const {
    const Tensor* tensor = Find(name);
    if (!tensor) Fail("{}: tensor {} is missing", where_, Quote(name));
    return *tensor;
  }

  [[noreturn]] void FailShape(const Tensor& tensor, const std::string& expected) const {
    Fail("{}: tensor {} has shape {}; expected {}", where_, Quote(tensor.name), tensor.ShapeText(), expected);
  }

  // The elements of a tensor that must have this shape; it counts as used.
  std::vector<float> Take(const std::string& name, const std::vector<size_t>& shape) {
    const Tensor& tensor = Require(name);
    if (tensor.shape != shape) FailShape(tensor, fmt::format("[{}]", fmt::join(shape, ", ")));
    used_.insert(name);
    types_.insert(tensor.type);
    std::vector<float> values = ToFloats(tensor, where_);
    info_.num_parameters += values.size();
    return values;
  }

  // [out, in] or [in, out], by the tensors that are not square; all must agree.
  void DecideOrientation() {
    const size_t width = config_.width, inner = config_.inner_width;
    std::string first;
    const auto check = [&](const std::string& name, size_t inputs, size_t outputs) {
      const Tensor& tensor = Require(name);
      const bool in_out = tensor.shape == std::vector{inputs, outputs};
      if (!in_out && tensor.shape != std::vector{outputs, inputs}) {
        FailShape(tensor, fmt::format("[{}, {}] or [{}, {}]", outputs, inputs, inputs, outputs));
      }
      if (inputs == outputs) return;  // square: follows the others
      if (first.empty()) {
        first = tensor.name;
        in_out_ = in_out;
      } else if (in_out != in_out_) {
        const auto text = [](bool is_in_out) { return is_in_out ? "[in, out]" : "[out, in]"; };
        Fail("{}: tensor {} is stored {}, but {} is {}; all must agree", where_, Quote(tensor.name), text(in_out),
             Quote(first), text(in_out_));
      }
    };
    for (size_t i = 0; i < config_.num_layers; ++i) {
      const std::string layer = fmt::format("h.{}.", i);
      check(layer + "attn.c_attn.weight", width, 3 * width);
      check(layer + "mlp.c_fc.weight", width, inner);
      check(layer + "mlp.c_proj.weight", inner, width);
    }
    info_.orientation = in_out_ ? "[in, out]" : "[out, in]";
  }

  // Either every layer norm and linear layer has a bias or none has.
  void DecideBiases() {
    std::vector<std::string> names = {"ln_f.bias"};
    for (size_t i = 0; i < config_.num_layers; ++i) {
      for (const char* part : {"ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"}) {
        names.push_back(fmt::format("h.{}.{}.bias", i, part));
      }
    }
    const auto present = [&](const std::string& name) { return Find(name) != nullptr; };
    const auto has = std::find_if(names.begin(), names.end(), present);
    const auto lacks = std::find_if_not(names.begin(), names.end(), present);
    info_.biases = has != names.end();
    if (info_.biases && lacks != names.end()) {
      Fail("{}: tensor {} is missing although {} is there; biases are all present or all absent", where_, Quote(*lacks),
           Quote(*has));
    }
    if (config_.biases && *config_.biases != info_.biases) {
      Fail("{}: the configuration says bias {}, but tensor {} is {}", where_, *config_.biases, Quote(names[0]),
           info_.biases ? "there" : "missing");
    }
  }

  std::vector<float> TakeBias(const std::string& name, size_t size) {
    return info_.biases ? Take(name + ".bias", {size}) : std::vector<float>(size, 0.0f);
  }

  Norm TakeNorm(const std::string& name) {
    std::vector<float> gain = Take(name + ".weight", {config_.width});
    return {std::move(gain), TakeBias(name, config_.width)};
  }

  Linear TakeLinear(const std::string& name, size_t inputs, size_t outputs) {
    std::vector<float> weight =
        in_out_ ? Take(name + ".weight", {inputs, outputs}) : Take(name + ".weight", {outputs, inputs});
    if (!in_out_) weight = Transposed(weight, outputs, inputs);
    return {std::move(weight), TakeBias(name, outputs)};
  }

  void GatherLayer(const std::string& layer, LayerWeights& out) {
    const size_t width = config_.width, inner = config_.inner_width;
    out.ln_1 = TakeNorm(layer + "ln_1");
    out.c_attn = TakeLinear(layer + "attn.c_attn", width, 3 * width);
    out.attn_proj = TakeLinear(layer + "attn.c_proj", width, width);
    out.ln_2 = TakeNorm(layer + "ln_2");
    out.c_fc = TakeLinear(layer + "mlp.c_fc", width, inner);
    out.mlp_proj = TakeLinear(layer + "mlp.c_proj", inner, width);
  }

  // A table with one row a vocabulary entry, and padding rows behind them, which are cut, if the configuration says where they begin.
  std::vector<float> TakeRows(const std::string& name) {
    const Tensor& tensor = Require(name);
    const size_t rows = config_.vocabulary_size, width = config_.width;
    if (tensor.shape.size() != 2 || tensor.shape[1] != width || tensor.shape[0] < rows ||
        (tensor.shape[0] > rows && !config_.states_vocabulary_size)) {
      FailShape(tensor, fmt::format("[{}, {}], a row for each vocabulary entry", rows, width));
    }
    std::vector<float> values = Take(name, tensor.shape);
    info_.padding_rows = std::max(info_.padding_rows, tensor.shape[0] - rows);
    info_.num_parameters -= values.size() - rows * width;
    values.resize(rows * width);
    return values;
  }

  void GatherHead(Weights& weights) {
    const bool has_wte = Find("wte.weight"), has_head = Find("lm_head.weight");
    // Hugging Face's default where the configuration is silent.
    const bool says_tied = config_.tied.value_or(true);
    if (!has_wte && !has_head) Fail("{}: tensors 'wte.weight' and 'lm_head.weight' are both missing", where_);
    if (!has_wte && !says_tied) {
      Fail("{}: tensor 'wte.weight' is missing, and the configuration does not tie it to 'lm_head.weight'", where_);
    }
    if (!has_head && !says_tied) {
      Fail("{}: tensor 'lm_head.weight' is missing, and the configuration says that it is not tied to 'wte.weight'",
           where_);
    }
    std::vector<float> head = has_head ? TakeRows("lm_head.weight") : TakeRows("wte.weight");
    if (has_wte && has_head) {
      weights.wte = TakeRows("wte.weight");
      info_.tied = head == weights.wte;
      if (info_.tied) info_.num_parameters -= head.size();
      if (!info_.tied && config_.tied.value_or(false)) {
        Fail("{}: the configuration ties the head, but tensors {} and {} differ", where_,
             Quote(Require("wte.weight").name), Quote(Require("lm_head.weight").name));
      }
    } else {
      info_.tied = true;
      weights.wte = head;
    }
    weights.lm_head = Transposed(head, config_.vocabulary_size, config_.width);
  }

  void RefuseLeftovers() const {
    for (const auto& [name, tensor] : tensors_) {
      if (!used_.contains(name)) {
        Fail("{}: tensor {} belongs to no part of a model with {}{}", where_, Quote(tensor->name),
             Counted(config_.num_layers, "layer"), info_.biases ? "" : " and no biases");
      }
    }
  }

  const ModelConfig& config_;
  std::string_view where_;
  StorageInfo& info_;
  std::map<std::string, const Tensor*, std::less<>> tensors_;  // by name without prefixes
  std::set<std::string> used_, types_;
  bool in_out_ = false;
};

}  // namespace

Weights GatherWeights(const std::vector<Tensor>& tensors, const ModelConfig& config, std::string_view where,
                      StorageInfo& info) {
  info = {};
  return Gatherer(tensors, config, where, info).Gather();
}

}  // namespace octavo
