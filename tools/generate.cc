// octavo generate: prompts in, completions out, in input order.
#include <unistd.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/error.h"
#include "engine/generate.h"
#include "engine/utf8.h"
#include "kernels/targets.h"
#include "tools/command.h"
#include "tools/io.h"
#include "tools/prompts.h"

namespace octavo::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Flags : CommonFlags {
  std::vector<std::string> prompts, prompt_files, stops;
  std::string input_format, unknown = "error", format = "text", overflow = "slide";
  uint64_t samples = 1, max_chars = 500, top_k = 0, first = 0;
  std::optional<uint64_t> seed;
  double temperature = 1, top_p = 1;
  bool escape = false;
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

const char* FinishName(Finish finish) {
  switch (finish) {
    case Finish::kLength:
      return "length";
    case Finish::kStop:
      return "stop";
    case Finish::kContext:
      return "context";
    case Finish::kError:
      break;
  }
  return "error";
}

// What a request carries through the engine.
struct Origin {
  std::shared_ptr<const PromptRecord> prompt;
  uint64_t sample;
};

// Turns prompts into requests, one a sample, and numbers them.
class RequestSource {
 public:
  RequestSource(const Model& model, PromptReader& reader, const UnknownPolicy& unknown, uint64_t seed, uint64_t first)
      : model_(model), reader_(reader), unknown_(unknown), seed_(seed), sequence_(first) {}

  std::optional<GenerateRequest> Next() {
    if (!prompt_ || sample_ == num_samples_) {
      if (!StartNextPrompt()) return std::nullopt;
    }
    GenerateRequest request;
    request.prompt = tokens_;
    request.options = prompt_->options;
    request.seed = prompt_->seed.value_or(seed_);
    request.sequence = prompt_->seed ? sample_ : base_ + sample_;
    request.error = error_;
    request.context = std::make_shared<Origin>(Origin{prompt_, sample_});
    ++sample_;
    return request;
  }

 private:
  bool StartNextPrompt() {
    std::optional<PromptRecord> record = reader_.Next();
    if (!record) return false;
    prompt_ = std::make_shared<const PromptRecord>(std::move(*record));
    tokens_.clear();
    error_ = prompt_->error;
    if (error_.empty()) {
      try {
        tokens_ = model_.vocabulary().Encode(*prompt_->text, unknown_);
      } catch (const Error& error) {
        error_ = error.what();
      }
    }
    // A bad line takes one number; a prompt takes as many as it asks for, also when it fails.
    base_ = sequence_;
    sequence_ += prompt_->error.empty() ? prompt_->samples : 1;
    num_samples_ = error_.empty() ? prompt_->samples : 1;
    sample_ = 0;
    return true;
  }

  const Model& model_;
  PromptReader& reader_;
  const UnknownPolicy unknown_;
  const uint64_t seed_;
  uint64_t sequence_, base_ = 0;
  std::shared_ptr<const PromptRecord> prompt_;
  std::vector<TokenId> tokens_;
  std::string error_;
  uint64_t sample_ = 0, num_samples_ = 0;
};

OrderedJson Record(const Origin& origin, const Completion& completion) {
  const PromptRecord& prompt = *origin.prompt;
  OrderedJson record = {
      {"index", prompt.index},
      {"sample", origin.sample},
      {"id", prompt.id},
      {"prompt", prompt.text ? OrderedJson(ReplaceInvalidUtf8(*prompt.text)) : OrderedJson(nullptr)},
      {"text", completion.text},
      {"finish", FinishName(completion.finish)},
      {"chars", completion.num_chars},
      {"logprob", completion.log_probability},
  };
  if (completion.finish == Finish::kError) {
    record["error"] = completion.error;
    record["line"] = prompt.line ? OrderedJson(*prompt.line) : OrderedJson(nullptr);
  }
  return record;
}

const Origin& OriginOf(const GenerateRequest& request) { return *static_cast<const Origin*>(request.context.get()); }

class Printer {
 public:
  Printer(std::string format, const PromptReader& reader) : format_(std::move(format)), reader_(reader) {}

  void Print(const GenerateRequest& request, const Completion& completion) {
    const Origin& origin = OriginOf(request);
    if (format_ == "jsonl") {
      WriteOut(JsonLine(Record(origin, completion)));
    } else if (format_ == "lines") {
      WriteOut(EscapeControls(completion.text) + '\n');
    } else if (request.error.empty()) {
      WriteOut(fmt::format("{}{}{}\n", began_ ? "\n" : "", *origin.prompt->text, completion.text));
      began_ = true;
    }
    Count(origin, completion);
  }

  // As Print in the format text, but each character as soon as it is known.
  void Stream(const Model& model, const GenerateRequest& request) {
    const Origin& origin = OriginOf(request);
    if (request.error.empty()) WriteOut(*origin.prompt->text);
    const Completion completion = Generate(model, request, WriteOut);
    if (request.error.empty()) WriteOut("\n");
    Count(origin, completion);
  }

  bool failed() const { return num_failed_ > 0; }

  // "3 completions (1 failed), 40 characters in 0.002 s, 20000 characters a second"
  std::string Totals(double seconds) const {
    return fmt::format("{}{}, {} in {:.3f} s, {:.0f} characters a second", Counted(num_completions_, "completion"),
                       failed() ? fmt::format(" ({} failed)", num_failed_) : "", Counted(num_chars_, "character"),
                       seconds, static_cast<double>(num_chars_) / seconds);
  }

 private:
  void Count(const Origin& origin, const Completion& completion) {
    ++num_completions_;
    num_chars_ += completion.num_chars;
    if (completion.finish != Finish::kError) return;
    ++num_failed_;
    Complain("{}: {}", reader_.Describe(*origin.prompt), completion.error);
  }

  const std::string format_;
  const PromptReader& reader_;
  bool began_ = false;
  uint64_t num_completions_ = 0, num_failed_ = 0, num_chars_ = 0;
};

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

int Run(const Flags& flags) {
  const GenerateOptions options = OptionsFrom(flags);
  const int num_threads = ThreadsFrom(flags);
  ApplyTarget(flags);
  std::vector<std::string> prompts = Unescape(flags.prompts, flags.escape, "--prompt");
  std::optional<Input> input = OpenInput(flags);
  const Model model = Model::Open(flags.model);
  const UnknownPolicy unknown = ReadUnknown(flags.unknown, model.vocabulary());
  const bool one = !input && prompts.size() <= 1 && flags.samples == 1;
  const bool json_lines = input && IsJsonLines(flags.input_format, flags.prompt_files[0]);

  const uint64_t seed = flags.seed ? *flags.seed : RandomSeed();
  if (!flags.seed && !flags.quiet) Complain("seed {}", seed);
  PromptReader reader(std::move(prompts), std::move(input), json_lines, {flags.samples, options}, flags.quiet);
  RequestSource source(model, reader, unknown, seed, flags.first);
  Printer printer(flags.format, reader);
  const auto began = std::chrono::steady_clock::now();
  if (one && flags.format == "text" && isatty(STDOUT_FILENO)) {
    printer.Stream(model, *source.Next());
  } else {
    GenerateAll(
        model, {.num_threads = num_threads}, [&] { return source.Next(); },
        [&](const GenerateRequest& request, Completion&& completion) { printer.Print(request, completion); });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (!flags.quiet) {
    Complain("{}, {}, target {}", printer.Totals(seconds), Counted(static_cast<uint64_t>(num_threads), "thread"),
             CurrentTarget());
  }
  return printer.failed() ? 1 : 0;
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
  add.AddSwitch("--escape", flags.escape, "read \\n \\t \\\\ \\uXXXX in --prompt and --stop");
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
      "  octavo generate --prompts in.jsonl --format jsonl --seed 1 > out.jsonl");
  auto flags = std::make_shared<Flags>();
  FlagAdder add(command);
  AddInputFlags(add, *flags);
  AddWritingFlags(add, *flags);
  add.Group("Output");
  add.AddChoice("--format", flags->format, {"text", "lines", "jsonl"},
                "prompt and completion as prose; a completion a line,\nescaped; or a JSON object a line");
  add.AddCommon(*flags);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace octavo::tools
