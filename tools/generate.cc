// octavo generate: prompts in, completions out, in input order.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/error.h"
#include "engine/generate.h"
#include "engine/hash.h"
#include "engine/utf8.h"
#include "engine/version.h"
#include "kernels/targets.h"
#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/completions.h"
#include "tools/io.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/prompts.h"
#include "tools/requests.h"
#include "tools/run_file.h"
#include "tools/same_file.h"
#include "tools/stop.h"

namespace octavo::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Flags : CommonFlags {
  std::vector<std::string> prompts, prompt_files, stops;
  std::string input_format, unknown = "error", format = "text", overflow = "slide", kv = "f32";
  uint64_t samples = 1, max_chars = 500, top_k = 0, first = 0;
  std::optional<uint64_t> seed;
  double temperature = 1, top_p = 1;
  bool escape = false, resume = false, force = false;
  std::string output;
};

std::vector<std::string> Unescape(const std::vector<std::string>& texts, bool escape, const char* flag) {
  if (!escape) return texts;
  std::vector<std::string> out;
  for (const std::string& text : texts) {
    try {
      out.push_back(ReadEscapes(text));
    } catch (const Error& error) {
      throw UsageError(fmt::format("{}: {}", flag, error.what()));
    }
  }
  return out;
}

constexpr std::string_view kReplace = "replace=";

void CheckUnknown(const std::string& text) {
  if (text == "error" || text == "skip" || text.starts_with(kReplace)) return;
  throw UsageError(fmt::format("{} is not error, skip or replace=C", Quote(text)));
}

UnknownPolicy ReadUnknown(const std::string& text, const Vocabulary& vocabulary) {
  if (text == "error") return {UnknownPolicy::Kind::kError};
  if (text == "skip") return {UnknownPolicy::Kind::kSkip};
  try {
    const std::vector<TokenId> ids = vocabulary.Encode(text.substr(kReplace.size()));
    if (ids.size() == 1) return {UnknownPolicy::Kind::kReplace, ids[0]};
  } catch (const Error& error) {
    throw UsageError(fmt::format("--unknown {}: {}", Quote(text), error.what()));
  }
  throw UsageError(fmt::format("--unknown {}: expected one character behind replace=", Quote(text)));
}

uint64_t RandomSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

GenerateOptions OptionsFrom(const Flags& flags) {
  GenerateOptions options;
  options.max_chars = flags.max_chars;
  options.stops = Unescape(flags.stops, flags.escape, "--stop");
  options.sampling = {flags.temperature, flags.top_k, flags.top_p};
  options.overflow = flags.overflow == "slide"     ? Overflow::kSlide
                     : flags.overflow == "restart" ? Overflow::kRestart
                                                   : Overflow::kStop;
  try {
    CheckOptions(options);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  return options;
}

// Whether a later run can read the same prompts.
bool CanReadAgain(const Flags& flags, const std::optional<Input>& input) {
  return input->is_regular() && flags.prompt_files[0] != "-";
}

std::optional<Input> OpenInput(const Flags& flags) {
  if (flags.prompt_files.size() > 1) {
    throw UsageError(fmt::format("--prompts: expected one file, found {}", flags.prompt_files.size()));
  }
  if (flags.prompt_files.empty()) {
    if (!flags.input_format.empty()) throw UsageError("--input-format: expected --prompts too, whose format it is");
    return std::nullopt;
  }
  return Input(flags.prompt_files[0]);
}

// "-" is standard output, as if --output were not given.
bool ToFile(const Flags& flags) { return !flags.output.empty() && flags.output != "-"; }

RunMode ModeFrom(const Flags& flags) {
  if (flags.output == "-") {
    if (flags.resume) throw UsageError("--resume: standard output cannot be resumed; expected --output FILE");
    return RunMode::kNew;  // --force has nothing to overwrite, but may stand in a script whose FILE is a variable
  }
  if (flags.output.empty()) {
    if (flags.resume || flags.force) {
      throw UsageError(
          fmt::format("--{}: expected --output too, which says with what file", flags.resume ? "resume" : "force"));
    }
    return RunMode::kNew;
  }
  if (flags.resume && flags.force) throw UsageError("--resume and --force: expected one of them, not both");
  if (flags.format == "text")
    throw UsageError("--output: expected --format lines or jsonl, whose records can be told apart");
  return flags.resume ? RunMode::kResume : flags.force ? RunMode::kForce : RunMode::kNew;
}

// Nothing that is written may be what is read.
void CheckFiles(const Flags& flags) {
  InputFiles inputs;
  for (const std::string& path : flags.prompt_files) inputs.Add(path, "--prompts");
  inputs.AddModel(flags.model);
  inputs.RefuseStandardError();
  if (!ToFile(flags)) return inputs.RefuseStandardOutput();
  inputs.RefuseAsOutput(flags.output, "--output");
  inputs.RefuseAsOutput(flags.output + ".run", "--output");
  InputFiles output;
  output.Add(flags.output, "--output");
  output.RefuseStandardError();
}

std::string Hex(uint64_t hash) { return fmt::format("{:016x}", hash); }

// What the bytes of a run depend on.
OrderedJson RunRecord(const Flags& flags, const GenerateOptions& options, const Model& model,
                      const std::vector<std::string>& prompts, const std::optional<Input>& input, bool json_lines,
                      uint64_t seed) {
  Fnv1a model_hash, flag_hash;
  const std::vector<std::byte> bytes = model.Serialize();
  model_hash.Add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const std::string& prompt : prompts) flag_hash.Add(fmt::format("{}:{}", prompt.size(), prompt));
  OrderedJson file = nullptr;
  if (input && CanReadAgain(flags, input)) {
    const bool escaped = flags.escape && !json_lines;
    file = Hex(HashFile(flags.prompt_files[0])) + (escaped ? ", escaped" : "");
  }
  return {{"octavo", Version()},
          {"numerics", kNumericsVersion},
          {"fused_multiply_add", HasFusedMultiplyAdd(CurrentTarget())},
          {"model", Hex(model_hash.value())},
          {"seed", seed},
          {"first", flags.first},
          {"prompts",
           {{"flags", Hex(flag_hash.value())}, {"file", file}, {"json_lines", json_lines}, {"unknown", flags.unknown}}},
          {"settings",
           {{"samples", flags.samples},
            {"max_chars", options.max_chars},
            {"stop", options.stops},
            {"temperature", options.sampling.temperature},
            {"top_k", options.sampling.top_k},
            {"top_p", options.sampling.top_p},
            {"overflow", flags.overflow},
            {"kv", flags.kv}}},
          {"format", flags.format}};
}

void CheckNextLine(RunFile& file, const std::string& line) {
  const uint64_t number = file.num_checked() + 1;
  if (file.TakeLine(line)) return;
  throw Error(fmt::format(
      "cannot resume {}: line {} is not what this run writes there, so it or others were changed, removed or "
      "added; expected the file as it was left; put it back, or begin anew with --force",
      QuotePath(file.path()), number));
}

// Writes all of them, from number `num_there` on. Those that are there but that no hash tells of are computed again and compared.
void WriteCompletions(const Model& model, const RunOptions& options, RequestSource& source, RunFile* file,
                      uint64_t num_there, CompletionWriter& writer, Output& output) {
  const uint64_t num_checked = file ? file->num_checked() : 0;
  uint64_t num_skipped = 0, num_to_check = num_there - num_checked;
  if (file && num_to_check == 0) file->GoOn();
  std::atomic<uint64_t> num_read = 0;
  uint64_t num_written = 0;
  const auto next = [&]() -> std::optional<GenerateRequest> {
    while (num_skipped < num_there) {
      std::optional<GenerateRequest> request = source.Next();
      if (!request && StopFlag()) return std::nullopt;
      if (!request) {
        throw Error(fmt::format("cannot resume {}: it has {} lines, the whole run {}", QuotePath(file->path()),
                                num_there, num_skipped));
      }
      writer.Skip(*request);
      if (num_skipped++ < num_checked) continue;
      ++num_read;
      return request;
    }
    std::optional<GenerateRequest> request = source.Next();
    num_read += request.has_value();
    return request;
  };
  GenerateAll(model, options, next, [&](const GenerateRequest& request, Completion&& completion) {
    if (num_to_check == 0) {
      writer.Write(request, completion);
    } else {
      CheckNextLine(*file, writer.LineOf(request, completion));
      if (--num_to_check == 0) file->GoOn();
    }
    if (++num_written == num_read) output.Flush();
  });
}

int Run(const Flags& flags) {
  const RunMode mode = ModeFrom(flags);
  const GenerateOptions options = OptionsFrom(flags);
  int num_threads = ThreadsFrom(flags);
  ApplyTarget(flags);
  CheckFiles(flags);
  std::vector<std::string> prompts = Unescape(flags.prompts, flags.escape, "--prompt");
  std::optional<Input> input = OpenInput(flags);
  const Model model = Model::Open(flags.model);
  const UnknownPolicy unknown = ReadUnknown(flags.unknown, model.vocabulary());
  const bool one = !input && prompts.size() <= 1 && flags.samples == 1;
  const bool json_lines = input && IsJsonLines(flags.input_format, flags.prompt_files[0]);
  if (mode == RunMode::kResume && input && !CanReadAgain(flags, input)) {
    throw Error(
        fmt::format("cannot resume {}: {} cannot be read again; expected a file", Quote(flags.output), input->name()));
  }

  std::optional<RunFile> file;
  if (ToFile(flags)) file.emplace(flags.output, mode);
  const std::optional<uint64_t> known_seed = flags.seed || !file ? flags.seed : file->seed();
  const uint64_t seed = known_seed ? *known_seed : RandomSeed();
  if (!known_seed && !flags.quiet) Complain("seed {}", seed);
  const bool can_resume = file && file->is_regular() && (!input || CanReadAgain(flags, input));
  const uint64_t num_there = file ? file->Begin(RunRecord(flags, options, model, prompts, input, json_lines, seed)) : 0;

  const bool streams = one && flags.format == "text" && isatty(STDOUT_FILENO);
  PromptReader reader(std::move(prompts), std::move(input), json_lines, {flags.samples, options, flags.escape},
                      flags.quiet);
  RequestSource source(model, reader, unknown, seed, flags.first);
  Output output(file ? file->fd() : STDOUT_FILENO, file ? Quote(file->path()) : "standard output",
                [&](std::string_view bytes) {
                  if (file) file->Wrote(bytes);
                });
  Progress progress(!flags.quiet && (file || !isatty(STDOUT_FILENO)), "completions");
  // A stream ends at its next character, and has no more to say.
  StopOnSignals(flags.quiet || streams ? "" : "completions", progress.shown());
  CompletionWriter writer(flags.format, reader, output, progress);
  const RunOptions run = StoppableRun(num_threads, flags.kv, flags.quiet);
  const auto began = std::chrono::steady_clock::now();
  if (streams) {
    writer.Stream(model, *source.Next(), run);
  } else {
    WriteCompletions(model, run, source, file ? &*file : nullptr, num_there, writer, output);
    output.Close();
    if (file) file->Finish();
  }
  progress.Clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (!flags.quiet) {
    if (num_there > 0) Complain("resumed behind {}", Counted(num_there, "completion"));
    Complain("{}, {}, target {}", writer.Totals(seconds), Counted(static_cast<uint64_t>(num_threads), "thread"),
             CurrentTarget());
    if (StopSignal() != 0 && can_resume) Complain("interrupted; to go on: {}", CommandWith("--resume", "--force"));
  }
  return ExitCode(writer.failed() ? 1 : 0);
}

void AddInputFlags(FlagAdder& add, Flags& flags) {
  add.Group("What to write on from (by default the model's start character)");
  add.AddTexts("--prompt", "TEXT", flags.prompts, "a beginning (repeatable)");
  add.AddTexts("--prompts", "FILE", flags.prompt_files,
               "more of them, one a line, or JSON lines such as\n"
               "{\"prompt\": \"ROMEO:\", \"samples\": 2, \"stop\": [\"\\n\"]};\n"
               "- is standard input");
  add.AddChoice("--input-format", flags.input_format, {"lines", "jsonl"},
                "of --prompts (default: jsonl if its name ends so)");
  add.AddSwitch("--escape", flags.escape,
                "read \\n \\t \\\\ \\uXXXX in --prompt, --stop and files of\nprompts that are not JSON lines");
  add.AddParsed("--unknown", "WHAT",
                "a prompt character that the model lacks: error, skip\nor replace=C (default error)",
                [&flags](const std::string& text) { CheckUnknown(flags.unknown = text); });
}

void AddWritingFlags(FlagAdder& add, Flags& flags) {
  add.Group("How much");
  add.AddUnsigned("--samples", "N", flags.samples, "completions of each prompt", 1);
  add.AddUnsigned("--max-chars", "N", flags.max_chars, "new characters at most");
  add.AddTexts("--stop", "TEXT", flags.stops, "end before this text (repeatable)");
  add.AddChoice("--overflow", flags.overflow, {"slide", "restart", "stop"},
                "beyond the model's context: exact, cheap, or end");
  add.AddKv(flags.kv);
  add.Group("Which characters");
  add.AddDouble("--temperature", "X", flags.temperature, "higher is wilder; 0: always the likeliest");
  add.AddUnsigned("--top-k", "K", flags.top_k, "draw from the K likeliest; 0: from all");
  add.AddDouble("--top-p", "P", flags.top_p, "draw from the likeliest that together reach\nprobability P; 1: from all");
  add.AddParsed("--seed", "N", "same seed, same text (default: random, and shown)",
                [&flags](const std::string& text) { flags.seed = ParseUnsigned(text); });
  add.AddUnsigned("--first", "N", flags.first, "number of the first completion, to write a part of\na larger run");
}

}  // namespace

void AddGenerateCommand(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("generate", "Write text");
  command.footer(
      "Examples:\n"
      "  octavo generate --prompt 'ROMEO:' --max-chars 500\n"
      "  octavo generate --prompts names.txt --samples 1000 --stop '\\n' --escape --format lines > out.txt\n"
      "  octavo generate --prompts in.jsonl --format jsonl --output out.jsonl");
  auto flags = std::make_shared<Flags>();
  FlagAdder add(command);
  AddInputFlags(add, *flags);
  AddWritingFlags(add, *flags);
  add.Group("Output");
  add.AddChoice("--format", flags->format, {"text", "lines", "jsonl"},
                "prompt and completion as prose; a completion a line,\nescaped; or a JSON object a line");
  add.AddText("--output", "FILE", flags->output,
              "write lines or jsonl there; FILE.run beside it keeps\nwhat a broken run needs to be resumed; - is "
              "standard\noutput");
  add.AddSwitch("--resume", flags->resume,
                "go on with FILE where a run was broken off; refused\nwhere FILE is not what that run wrote");
  add.AddSwitch("--force", flags->force, "overwrite FILE and FILE.run");
  add.AddCommon(*flags);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace octavo::tools
