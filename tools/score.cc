// octavo score: how probable a model finds texts, character by character.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>

#include "engine/error.h"
#include "engine/json.h"
#include "engine/score.h"
#include "engine/utf8.h"
#include "kernels/targets.h"
#include "tools/command.h"
#include "tools/io.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/same_file.h"
#include "tools/stop.h"

namespace octavo::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Flags : CommonFlags {
  std::string file, input_format, format = "jsonl", kv = "f32";
  std::optional<std::string> start, end;
  uint64_t stride = 0;
  bool document = false, per_char = false, escape = false;
};

// One text of the input, and where it stood.
struct TextRecord {
  uint64_t index = 0, line = 0;
  std::optional<std::string> text;
  std::string error;
  std::optional<double> share;  // how much of the input is done with it, where that is known
};

class TextReader {
 public:
  explicit TextReader(const Flags& flags)
      : input_(flags.file),
        document_(flags.document),
        json_lines_(IsJsonLines(flags.input_format, flags.file)),
        unknown_keys_(flags.quiet) {}

  std::optional<TextRecord> Next() {
    TextRecord record;
    if (document_) {
      if (next_index_++ > 0) return std::nullopt;
      record.text = input_.ReadAll();
      if (StopFlag()) return std::nullopt;
      return record;
    }
    std::optional<std::string> line;
    do {
      if (!(line = input_.NextLine())) return std::nullopt;
      record.line = ++line_;
    } while (json_lines_ && IsBlank(*line));
    record.index = next_index_++;
    record.share = input_.ShareTaken();
    if (json_lines_) {
      ReadJson(*line, record);
    } else {
      record.text = std::move(*line);
    }
    return record;
  }

  std::string Describe(const TextRecord& record) const {
    return document_ ? input_.name() : fmt::format("{} line {}", input_.name(), record.line);
  }

 private:
  void ReadJson(const std::string& line, TextRecord& record) {
    try {
      const JsonDocument document = ParseJson(line, "the line");
      const nlohmann::json& object = *document;
      if (!object.is_object() || !object.contains("text") || !object["text"].is_string()) {
        throw Error("the line is not an object with a string 'text'");
      }
      record.text = object["text"].get<std::string>();
      for (const auto& [key, value] : object.items()) {
        if (key != "text") unknown_keys_.Warn(key, input_.name(), line_);
      }
    } catch (const Error& error) {
      record.error = error.what();
    }
  }

  Input input_;
  const bool document_, json_lines_;
  uint64_t next_index_ = 0, line_ = 0;
  UnknownKeys unknown_keys_;
};

std::optional<TokenId> ReadCharacter(const std::optional<std::string>& text, const Vocabulary& vocabulary,
                                     const Flags& flags, const char* flag) {
  if (!text) return std::nullopt;
  try {
    const std::vector<TokenId> ids = vocabulary.Encode(flags.escape ? ReadEscapes(*text) : *text);
    if (ids.size() == 1) return ids[0];
  } catch (const Error& error) {
    throw UsageError(fmt::format("{} {}: {}", flag, Quote(*text), error.what()));
  }
  throw UsageError(fmt::format("{} {}: expected one character", flag, Quote(*text)));
}

OrderedJson Record(const TextRecord& record, const Score& score, const Flags& flags) {
  const size_t scored = score.log_probabilities.size();
  OrderedJson object = {{"index", record.index}};
  if (!flags.document) {
    object["text"] = record.text ? OrderedJson(ReplaceInvalidUtf8(*record.text)) : OrderedJson(nullptr);
  }
  object["chars"] = scored;
  // Nothing scored has no sum and no mean.
  object["nll"] = scored ? OrderedJson(score.nats) : OrderedJson(nullptr);
  object["nats_per_char"] = scored ? OrderedJson(score.nats / static_cast<double>(scored)) : OrderedJson(nullptr);
  if (flags.per_char) object["logprobs"] = score.log_probabilities;
  if (!score.error.empty()) {
    object["error"] = score.error;
    object["line"] = flags.document ? OrderedJson(nullptr) : OrderedJson(record.line);
  }
  return object;
}

class Printer {
 public:
  Printer(const Flags& flags, const TextReader& reader, Output& output, Progress& progress)
      : flags_(flags), reader_(reader), output_(output), progress_(progress) {}

  void Print(const ScoreRequest& request, const Score& score) {
    const TextRecord& record = *static_cast<const TextRecord*>(request.context.get());
    output_.Write(JsonLine(Record(record, score, flags_)));
    ++num_texts_;
    num_chars_ += score.log_probabilities.size();
    nats_ += score.nats;
    progress_.Show(num_texts_, num_chars_, record.share);
    if (score.error.empty()) return;
    ++num_failed_;
    progress_.Clear();
    Complain("{}: {}", reader_.Describe(record), score.error);
  }

  bool failed() const { return num_failed_ > 0; }

  // "2 texts, 40 characters, 2.1000 nats a character (3.0297 bits), perplexity 8.1662, 0.002 s, 20000 characters a second"
  std::string Totals(double seconds) const {
    const double count = static_cast<double>(num_chars_), mean = nats_ / count;
    const std::string figures = num_chars_ == 0
                                    ? "nothing scored"
                                    : fmt::format("{:.4f} nats a character ({:.4f} bits), perplexity {:.4f}", mean,
                                                  mean / std::numbers::ln2, std::exp(mean));
    return fmt::format("{}{}, {}, {}, {:.3f} s, {:.0f} characters a second", Counted(num_texts_, "text"),
                       failed() ? fmt::format(" ({} failed)", num_failed_) : "", Counted(num_chars_, "character"),
                       figures, seconds, count / seconds);
  }

 private:
  const Flags& flags_;
  const TextReader& reader_;
  Output& output_;
  Progress& progress_;
  uint64_t num_texts_ = 0, num_failed_ = 0, num_chars_ = 0;
  double nats_ = 0;
};

int Run(const Flags& flags) {
  if (flags.document && !flags.input_format.empty()) {
    throw UsageError("--input-format: expected it without --document, which reads the file as one text");
  }
  int num_threads = ThreadsFrom(flags);
  ApplyTarget(flags);
  InputFiles inputs;
  inputs.Add(flags.file, "score");
  inputs.AddModel(flags.model);
  inputs.RefuseStandardStreams();
  TextReader reader(flags);
  const Model model = Model::Open(flags.model);
  const std::optional<TokenId> start = ReadCharacter(flags.start, model.vocabulary(), flags, "--start");
  const std::optional<TokenId> end = ReadCharacter(flags.end, model.vocabulary(), flags, "--end");
  try {
    CheckStride(model, flags.stride);
  } catch (const Error& error) {
    throw UsageError(fmt::format("--stride: {}", error.what()));
  }
  std::atomic<uint64_t> num_read = 0;
  const auto next = [&]() -> std::optional<ScoreRequest> {
    std::optional<TextRecord> record = reader.Next();
    if (!record) return std::nullopt;
    ++num_read;
    ScoreRequest request;
    request.stride = flags.stride;
    request.error = record->error;
    if (request.error.empty()) {
      try {
        request.text = model.vocabulary().Encode(*record->text);
      } catch (const Error& error) {
        request.error = error.what();
      }
    }
    if (start) request.text.insert(request.text.begin(), *start);
    if (end) request.text.push_back(*end);
    request.context = std::make_shared<TextRecord>(std::move(*record));
    return request;
  };
  Output output(STDOUT_FILENO, "standard output");
  Progress progress(!flags.quiet && !isatty(STDOUT_FILENO), "texts");
  StopOnSignals(flags.quiet ? "" : "texts", progress.shown());
  Printer printer(flags, reader, output, progress);
  const auto began = std::chrono::steady_clock::now();
  const RunOptions options = StoppableRun(num_threads, flags.kv, flags.quiet);
  uint64_t num_written = 0;
  ScoreAll(model, options, next, [&](const ScoreRequest& request, Score&& score) {
    printer.Print(request, score);
    if (++num_written == num_read) output.Flush();
  });
  output.Close();
  progress.Clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (!flags.quiet) {
    Complain("{}, {}, target {}", printer.Totals(seconds), Counted(static_cast<uint64_t>(num_threads), "thread"),
             CurrentTarget());
  }
  return ExitCode(printer.failed() ? 1 : 0);
}

}  // namespace

void AddScoreCommand(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("score", "Say how probable a model finds texts");
  command.footer(
      "Examples:\n"
      "  octavo score lines.txt\n"
      "  octavo score --document play.txt --stride 32");
  auto flags = std::make_shared<Flags>();
  FlagAdder add(command);
  add.Group("Input");
  add.AddParsed("FILE", "", "a text a line, or JSON lines with \"text\";\n- is standard input",
                [flags](const std::string& text) { flags->file = text; })
      ->required();
  add.AddSwitch("--document", flags->document, "the whole file is one text");
  add.AddChoice("--input-format", flags->input_format, {"lines", "jsonl"},
                "of FILE (default: jsonl if its name ends so)");
  add.Group("How");
  add.AddParsed("--stride", "N",
                "characters between the windows that a longer text is\nread in (default: the model's context, which is "
                "most)",
                [flags](const std::string& text) { flags->stride = ParseUnsigned(text, 1); });
  add.AddParsed("--start", "C", "a character before each text, so that its first is\nscored too",
                [flags](const std::string& text) { flags->start = text; });
  add.AddParsed("--end", "C", "a character behind each text, so that ending there\nis scored",
                [flags](const std::string& text) { flags->end = text; });
  add.AddKv(flags->kv);
  add.AddSwitch("--escape", flags->escape, "read \\n \\t \\\\ \\uXXXX in --start and --end");
  add.Group("Output");
  add.AddSwitch("--per-char", flags->per_char, "also the log-probability of every character");
  add.AddChoice("--format", flags->format, {"jsonl"}, "a JSON object a line");
  add.AddCommon(*flags);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace octavo::tools
