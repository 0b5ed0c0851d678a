// octavo check: the vector kernels against the scalar reference, on this CPU.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/check/check.h"
#include "engine/target.h"
#include "kernels/targets.h"
#include "tools/command.h"
#include "tools/io.h"
#include "tools/same_file.h"

namespace octavo::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Flags {
  std::vector<std::string> targets;
  std::string model = "tiny", format = "table";
  uint64_t num_cases = 100, seed = 1;
  bool quiet = false;
};

// The targets that --target or else OCTAVO_TARGET names; none: all that this CPU runs. UsageError for one that is not there.
std::vector<std::string> ReadTargets(const Flags& flags) {
  std::vector<std::string> targets = flags.targets;
  if (targets.empty() && !TargetOfEnvironment().empty()) targets = {""};
  for (std::string& target : targets) {
    ApplyTarget(target, flags.quiet);
    target = CurrentTarget();
  }
  return targets;
}

const char* Verdict(const check::Row& row) { return row.failure.empty() ? "ok" : "FAILED"; }

void PrintTableHead() {
  WriteOut(fmt::format("{:<18}{:<8}{:>7}  {:>12}  verdict\n", "kernel", "target", "cases", "error/bound"));
}

void PrintTableRow(const check::Row& row) {
  WriteOut(fmt::format("{:<18}{:<8}{:>7}  {:>12.3f}  {}{}{}\n", row.kernel, row.target, row.num_cases, row.worst,
                       Verdict(row), row.failure.empty() ? "" : ": ", row.failure));
}

std::string JsonOf(const std::vector<check::Row>& rows, bool passed) {
  OrderedJson list = OrderedJson::array();
  for (const check::Row& row : rows) {
    list.push_back({{"kernel", row.kernel},
                    {"target", row.target},
                    {"cases", row.num_cases},
                    {"worst_share_of_bound", row.worst},
                    {"same_bits", row.same_bits},
                    {"passed", row.failure.empty()},
                    {"failure", row.failure.empty() ? OrderedJson(nullptr) : OrderedJson(row.failure)}});
  }
  return OrderedJson{{"passed", passed}, {"rows", list}}.dump(2) + '\n';
}

// What it means that some rows failed.
const char* Conclusion(const std::vector<check::Row>& rows) {
  const bool wrong = std::any_of(rows.begin(), rows.end(), [](const check::Row& row) {
    return !row.failure.empty() && row.kernel != check::kPromise;
  });
  return wrong ? "some checks failed: these kernels compute wrong results here"
               : "the promise failed: the results are right within their bounds, but texts may differ from those of "
                 "other "
                 "machines";
}

int Run(const Flags& flags) {
  check::Options options;
  options.targets = ReadTargets(flags);
  InputFiles inputs;
  inputs.AddModel(flags.model);
  inputs.RefuseStandardStreams();
  const Model model = Model::Open(flags.model);
  options.num_cases = flags.num_cases;
  options.seed = flags.seed;
  options.model = &model;
  const bool table = flags.format == "table";
  bool passed = true, begun = false;
  const auto on_row = [&](const check::Row& row) {
    passed &= row.failure.empty();
    if (!table) return;
    if (!std::exchange(begun, true)) PrintTableHead();
    PrintTableRow(row);
  };
  const std::vector<check::Row> rows = check::Run(options, on_row);
  if (!table) WriteOut(JsonOf(rows, passed));
  if (!passed) Complain("{}", Conclusion(rows));
  if (passed && table && !flags.quiet) Complain("all is well: {} checks passed", rows.size());
  return passed ? 0 : 1;
}

}  // namespace

void AddCheckCommand(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("check", "Check the kernels against the scalar reference on this CPU");
  command.footer(
      "Every kernel on every target, on random shapes and hard inputs; then whole models; and that all targets with\n"
      "fused multiply-add give the same bits. The rows 'promise' close it: fixed cases, whatever the flags,\n"
      "whose bits must be those that every other machine finds. Exit code 1 if anything fails.\n"
      "Examples:\n"
      "  octavo check\n"
      "  octavo check --target AVX2 --cases 1000 --seed 7");
  auto flags = std::make_shared<Flags>();
  FlagAdder add(command);
  add.Group("What is checked");
  add.AddTexts("--target", "NAME", flags->targets,
               "an instruction set (repeatable); none: the one that\nOCTAVO_TARGET names, else all that this CPU runs");
  add.AddText("--model", "NAME|FILE|DIR", flags->model, "a model to check beside random ones");
  add.AddUnsigned("--cases", "N", flags->num_cases, "of each kernel on each target", 1);
  add.AddUnsigned("--seed", "N", flags->seed, "of the random cases");
  add.Group("Output");
  add.AddChoice("--format", flags->format, {"table", "json"}, "for people or for programs");
  add.AddSwitch("--quiet", flags->quiet, "only errors on standard error");
  command.set_help_flag("-h,--help", "show this text")->group("Output");
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace octavo::tools
