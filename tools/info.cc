// octavo info: what a model is and what the machine is.
#include <nlohmann/json.hpp>

#include "engine/machine.h"
#include "engine/model.h"
#include "engine/threads.h"
#include "engine/utf8.h"
#include "engine/version.h"
#include "kernels/targets.h"
#include "tools/command.h"
#include "tools/io.h"
#include "tools/same_file.h"

namespace octavo::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Flags : CommonFlags {
  std::string format = "table";
};

OrderedJson DescribeModel(const std::string& name, const Model& model) {
  const ModelConfig& config = model.config();
  const StorageInfo& storage = model.storage();
  const Vocabulary& vocabulary = model.vocabulary();
  std::vector<std::string> special;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.is_special(static_cast<TokenId>(id))) special.push_back(vocabulary.entries()[id]);
  }
  return {
      {"name", name},
      {"parameters", storage.num_parameters},
      {"layers", config.num_layers},
      {"heads", config.num_heads},
      {"head_size", config.head_size()},
      {"width", config.width},
      {"inner_width", config.inner_width},
      {"context", config.context_length},
      {"vocabulary", config.vocabulary_size},
      {"padding", storage.padding_rows},
      {"special_tokens", special},
      {"start", vocabulary.entries()[static_cast<size_t>(model.start_token())]},
      {"activation", ActivationName(config.activation)},
      {"layer_norm_epsilon", ParseDouble(fmt::format("{}", config.layer_norm_epsilon))},  // shortest decimals
      {"tied", storage.tied},
      {"biases", storage.biases},
      {"type", storage.type},
      {"orientation", storage.orientation},
  };
}

OrderedJson DescribeCpu(const Flags& flags) {
  const Machine machine = DescribeMachine();
  const ThreadCount threads = DefaultThreads();
  OrderedJson caches = OrderedJson::array();
  for (const Cache& cache : machine.caches) {
    caches.push_back({{"level", cache.level}, {"type", cache.type}, {"size_bytes", cache.size_bytes}});
  }
  return {
      {"name", machine.cpu_name},
      {"caches", caches},
      {"targets_compiled", CompiledTargets()},
      {"targets_runnable", RunnableTargets()},
      {"target", CurrentTarget()},
      {"threads", ThreadsFrom(flags)},
      {"threads_reason", flags.threads ? "--threads" : threads.reason},
  };
}

std::string Show(const OrderedJson& value) {
  if (value.is_string()) return EscapeControls(value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_array()) return value.dump();
  std::string out;
  for (const OrderedJson& item : value) {
    out += out.empty() ? "" : ", ";
    out += item.is_object() ? fmt::format("L{} {} {} KiB", item["level"].get<int>(), item["type"].get<std::string>(),
                                          item["size_bytes"].get<uint64_t>() >> 10)
                            : Show(item);
  }
  return out.empty() ? "none" : out;
}

int Run(const Flags& flags) {
  ApplyTarget(flags);
  InputFiles inputs;
  inputs.AddModel(flags.model);
  inputs.RefuseStandardStreams();
  const OrderedJson cpu = DescribeCpu(flags);
  const OrderedJson info = {
      {"octavo", {{"version", Version()}, {"numerics_version", kNumericsVersion}}},
      {"model", DescribeModel(flags.model, Model::Open(flags.model))},
      {"cpu", cpu},
  };
  if (flags.format == "json") {
    WriteOut(info.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + '\n');
    return 0;
  }
  std::string table;
  for (const auto& [section, entries] : info.items()) {
    table += fmt::format("{}{}\n", table.empty() ? "" : "\n", section);
    for (const auto& [key, value] : entries.items()) table += fmt::format("  {:<20}{}\n", key, Show(value));
  }
  WriteOut(table);
  return 0;
}

}  // namespace

void AddInfoCommand(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("info", "Describe a model and this machine");
  command.footer(
      "Examples:\n"
      "  octavo info\n"
      "  octavo info --model my.safetensors --format json");
  auto flags = std::make_shared<Flags>();
  FlagAdder add(command);
  add.Group("Output");
  add.AddChoice("--format", flags->format, {"table", "json"}, "for people or for programs");
  add.AddCommon(*flags);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace octavo::tools
