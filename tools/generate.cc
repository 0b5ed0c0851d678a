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
#include "tools/command.h"
#include "tools/io.h"
#include "tools/prompts.h"

namespace octavo::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Flags : CommonFlags {
  std::vector<std::string> prompts, stops;
  std::string prompts_file, input_format, unknown = "error", format = "text", overflow = "slide";
  uint64_t samples = 1, max_chars = 500, top_k = 0, seed = 0, first = 0;
  double temperature = 1, top_p = 1;
  bool escape = false;
  CLI::Option* seed_flag = nullptr;
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

UnknownPolicy ReadUnknown(const std::string& text, const Vocabulary& vocabulary) {
  constexpr std::string_view kReplace = "replace=";
  if (text == "error") return {UnknownPolicy::Kind::kError};
  if (text == "skip") return {UnknownPolicy::Kind::kSkip};
  if (!text.starts_with(kReplace)) {
    throw UsageError(fmt::format("--unknown: {} is not error, skip or replace=C", Quote(text)));
  }
  const std::string character = text.substr(kReplace.size());
  try {
    const std::vector<TokenId> ids = vocabulary.Encode(character);
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

std::string JsonLine(const Origin& origin, const Completion& completion) {
  const PromptRecord& prompt = *origin.prompt;
  const bool failed = completion.finish == Finish::kError;
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
  if (failed) {
    record["error"] = completion.error;
    record["line"] = prompt.line ? OrderedJson(*prompt.line) : OrderedJson(nullptr);
  }
  return record.dump() + '\n';
}

class Printer {
 public:
  Printer(std::string format, const PromptReader& reader) : format_(std::move(format)), reader_(reader) {}

  void Print(const Origin& origin, const Completion& completion) {
    if (completion.finish == Finish::kError) {
      failed_ = true;
      Complain("{}: {}", reader_.Describe(*origin.prompt), completion.error);
    }
    ++num_completions_;
    num_chars_ += completion.num_chars;
    if (format_ == "jsonl") {
      WriteOut(JsonLine(origin, completion));
    } else if (format_ == "lines") {
      WriteOut(EscapeControls(completion.text) + '\n');
    } else if (completion.finish != Finish::kError || !completion.text.empty()) {
      WriteOut(fmt::format("{}{}{}\n", began_ ? "\n" : "", *origin.prompt->text, completion.text));
      began_ = true;
    }
  }

  // For one completion that was shown while it was written.
  void CountStreamed(const Origin& origin, const Completion& completion) {
    WriteOut("\n");
    if (completion.finish == Finish::kError) {
      failed_ = true;
      Complain("{}: {}", reader_.Describe(*origin.prompt), completion.error);
    }
    ++num_completions_;
    num_chars_ += completion.num_chars;
  }

  bool failed() const { return failed_; }
  uint64_t num_completions() const { return num_completions_; }
  uint64_t num_chars() const { return num_chars_; }

 private:
  const std::string format_;
  const PromptReader& reader_;
  bool failed_ = false, began_ = false;
  uint64_t num_completions_ = 0, num_chars_ = 0;
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

// A prompt file is JSON lines when its name or the flag says so.
bool IsJsonLines(const Flags& flags) {
  return flags.input_format.empty() ? flags.prompts_file.ends_with(".jsonl") : flags.input_format == "jsonl";
}

int Run(const Flags& flags) {
  const GenerateOptions options = OptionsFrom(flags);
  const int num_threads = ThreadsFrom(flags);
  std::vector<std::string> prompts = Unescape(flags.prompts, flags.escape, "--prompt");
  const Model model = Model::Open(flags.model);
  const UnknownPolicy unknown = ReadUnknown(flags.unknown, model.vocabulary());
  std::optional<Input> input;
  if (!flags.prompts_file.empty()) input.emplace(flags.prompts_file);
  const bool one = !input && prompts.size() <= 1 && flags.samples == 1;

  const uint64_t seed = flags.seed_flag->count() ? flags.seed : RandomSeed();
  if (!flags.seed_flag->count() && !flags.quiet) Complain("seed {}", seed);
  PromptReader reader(std::move(prompts), std::move(input), IsJsonLines(flags), {flags.samples, options}, flags.quiet);
  RequestSource source(model, reader, unknown, seed, flags.first);
  Printer printer(flags.format, reader);
  const auto began = std::chrono::steady_clock::now();
  const auto origin_of = [](const GenerateRequest& request) -> const Origin& {
    return *static_cast<const Origin*>(request.context.get());
  };
  if (one && flags.format == "text" && isatty(STDOUT_FILENO)) {
    const GenerateRequest request = *source.Next();
    if (request.error.empty()) WriteOut(*origin_of(request).prompt->text);
    printer.CountStreamed(origin_of(request), Generate(model, request, WriteOut));
  } else {
    GenerateAll(
        model, num_threads, [&] { return source.Next(); },
        [&](const GenerateRequest& request, Completion&& completion) {
          printer.Print(origin_of(request), completion);
        });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (!flags.quiet) {
    Complain("{} completions, {} characters in {:.3g} s, {:.0f} characters a second, {} threads, target scalar",
             printer.num_completions(), printer.num_chars(), seconds,
             static_cast<double>(printer.num_chars()) / seconds, num_threads);
  }
  return printer.failed() ? 1 : 0;
}

}  // namespace

void AddGenerateCommand(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("generate", "Write text");
  auto flags = std::make_shared<Flags>();
  AddTexts(command, "--prompt", flags->prompts,
           "a beginning to write on from (repeatable); none: the model's start character");
  command.add_option("--prompts", flags->prompts_file, "more prompts, one a line, or JSON lines; - is standard input")
      ->type_name("FILE");
  command.add_option("--input-format", flags->input_format, "of --prompts; by default the name decides (.jsonl)")
      ->check(CLI::IsMember({"lines", "jsonl"}));
  AddUnsigned(command, "--samples", flags->samples, "completions a prompt", 1);
  AddUnsigned(command, "--max-chars", flags->max_chars, "new characters at most");
  AddTexts(command, "--stop", flags->stops, "end before this text (repeatable)");
  command.add_flag("--escape", flags->escape, "read \\n \\t \\\\ \\uXXXX in --prompt and --stop");
  AddDouble(command, "--temperature", flags->temperature, "0: always the likeliest character");
  AddUnsigned(command, "--top-k", flags->top_k, "draw from the K likeliest; 0: off");
  AddDouble(command, "--top-p", flags->top_p, "draw from the likeliest that together reach this probability; 1: off");
  flags->seed_flag =
      AddUnsigned(command, "--seed", flags->seed, "same seed, same text; random if absent")->default_str("");
  AddUnsigned(command, "--first", flags->first, "number of the first completion, to write a part of a larger run");
  command.add_option("--overflow", flags->overflow, "beyond the context: exact, cheap, or end")
      ->check(CLI::IsMember({"slide", "restart", "stop"}))
      ->capture_default_str();
  command.add_option("--unknown", flags->unknown, "a prompt character that the model lacks: error, skip or replace=C")
      ->type_name("WHAT")
      ->capture_default_str();
  command.add_option("--format", flags->format, "of the output")
      ->check(CLI::IsMember({"text", "lines", "jsonl"}))
      ->capture_default_str();
  AddCommonFlags(command, *flags);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace octavo::tools
