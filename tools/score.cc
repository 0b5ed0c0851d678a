// octavo score: how probable a model finds texts, character by character.
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>

#include "engine/error.h"
#include "engine/json.h"
#include "engine/score.h"
#include "engine/utf8.h"
#include "tools/command.h"
#include "tools/io.h"

namespace octavo::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Flags : CommonFlags {
  std::string file, input_format, start, end, format = "jsonl";
  uint64_t stride = 0;
  bool document = false, per_char = false, escape = false;
  CLI::Option* stride_flag = nullptr;
};

// One text of the input, and where it stood.
struct TextRecord {
  uint64_t index = 0, line = 0;
  std::optional<std::string> text;
  std::string error;
};

class TextReader {
 public:
  TextReader(const Flags& flags) : input_(flags.file), document_(flags.document) {
    json_lines_ = flags.input_format.empty() ? flags.file.ends_with(".jsonl") : flags.input_format == "jsonl";
  }

  std::optional<TextRecord> Next() {
    TextRecord record;
    if (document_) {
      if (next_index_++ > 0) return std::nullopt;
      record.text = input_.ReadAll();
      return record;
    }
    std::optional<std::string> line;
    do {
      if (!(line = input_.NextLine())) return std::nullopt;
      record.line = ++line_;
    } while (json_lines_ && line->find_first_not_of(" \t") == std::string::npos);
    record.index = next_index_++;
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
  static void ReadJson(const std::string& line, TextRecord& record) {
    try {
      const nlohmann::json object = ParseJson(line, "the line");
      if (!object.is_object() || !object.contains("text") || !object["text"].is_string()) {
        throw Error("the line is not an object with a string 'text'");
      }
      record.text = object["text"].get<std::string>();
    } catch (const Error& error) {
      record.error = error.what();
    }
  }

  Input input_;
  const bool document_;
  bool json_lines_ = false;
  uint64_t next_index_ = 0, line_ = 0;
};

std::optional<TokenId> ReadCharacter(const std::string& text, const Vocabulary& vocabulary, const Flags& flags,
                                     const char* flag) {
  if (text.empty()) return std::nullopt;
  try {
    const std::vector<TokenId> ids = vocabulary.Encode(flags.escape ? ReadEscapes(text) : text);
    if (ids.size() == 1) return ids[0];
  } catch (const Error& error) {
    throw UsageError(fmt::format("{} {}: {}", flag, Quote(text), error.what()));
  }
  throw UsageError(fmt::format("{} {}: expected one character", flag, Quote(text)));
}

// Totals over all texts, for the closing line.
struct Totals {
  uint64_t num_texts = 0, num_chars = 0;
  double nats = 0;
  bool failed = false;
};

std::string JsonLine(const TextRecord& record, const Score& score, const Flags& flags) {
  const size_t scored = score.log_probabilities.size();
  OrderedJson object = {{"index", record.index}};
  if (!flags.document)
    object["text"] = record.text ? OrderedJson(ReplaceInvalidUtf8(*record.text)) : OrderedJson(nullptr);
  object["chars"] = scored;
  // Nothing scored has no sum and no mean.
  object["nll"] = scored ? OrderedJson(score.nats) : OrderedJson(nullptr);
  object["nats_per_char"] = scored ? OrderedJson(score.nats / static_cast<double>(scored)) : OrderedJson(nullptr);
  if (flags.per_char) object["logprobs"] = score.log_probabilities;
  if (!score.error.empty()) {
    object["error"] = score.error;
    object["line"] = flags.document ? OrderedJson(nullptr) : OrderedJson(record.line);
  }
  return object.dump() + '\n';
}

int Run(const Flags& flags) {
  const int num_threads = ThreadsFrom(flags);
  const Model model = Model::Open(flags.model);
  const std::optional<TokenId> start = ReadCharacter(flags.start, model.vocabulary(), flags, "--start");
  const std::optional<TokenId> end = ReadCharacter(flags.end, model.vocabulary(), flags, "--end");
  try {
    CheckStride(model, flags.stride);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  TextReader reader(flags);
  const auto next = [&]() -> std::optional<ScoreRequest> {
    std::optional<TextRecord> record = reader.Next();
    if (!record) return std::nullopt;
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
  Totals totals;
  const auto emit = [&](const ScoreRequest& request, Score&& score) {
    const TextRecord& record = *static_cast<const TextRecord*>(request.context.get());
    if (!score.error.empty()) {
      totals.failed = true;
      Complain("{}: {}", reader.Describe(record), score.error);
    }
    ++totals.num_texts;
    totals.num_chars += score.log_probabilities.size();
    totals.nats += score.nats;
    WriteOut(JsonLine(record, score, flags));
  };
  const auto began = std::chrono::steady_clock::now();
  ScoreAll(model, num_threads, next, emit);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (!flags.quiet) {
    const double count = static_cast<double>(totals.num_chars);
    const double mean = totals.nats / count;
    const std::string figures = totals.num_chars == 0
                                    ? "nothing scored"
                                    : fmt::format("{:.4f} nats a character ({:.4f} bits), perplexity {:.4f}", mean,
                                                  mean / std::numbers::ln2, std::exp(mean));
    Complain("{} texts, {} characters, {}, {:.0f} characters a second, {} threads, target scalar", totals.num_texts,
             totals.num_chars, figures, count / seconds, num_threads);
  }
  return totals.failed ? 1 : 0;
}

}  // namespace

void AddScoreCommand(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("score", "Say how probable a model finds texts");
  auto flags = std::make_shared<Flags>();
  command.add_option("FILE", flags->file, "a text a line, or JSON lines with \"text\"; - is standard input")
      ->required();
  command.add_flag("--document", flags->document, "the file is one text");
  command.add_option("--input-format", flags->input_format, "by default the name decides (.jsonl)")
      ->check(CLI::IsMember({"lines", "jsonl"}));
  flags->stride_flag = AddUnsigned(command, "--stride", flags->stride,
                                   "characters between windows, 1 to the context length (the default)", 1)
                           ->default_str("");
  command.add_option("--start", flags->start, "a character before each text, so that its first is scored too")
      ->type_name("C");
  command.add_option("--end", flags->end, "a character behind each text, so that ending there is scored")
      ->type_name("C");
  command.add_flag("--escape", flags->escape, "read \\n \\t \\\\ \\uXXXX in --start and --end");
  command.add_flag("--per-char", flags->per_char, "the natural log of the probability of every scored character");
  command.add_option("--format", flags->format, "of the output")
      ->check(CLI::IsMember({"jsonl"}))
      ->capture_default_str();
  AddCommonFlags(command, *flags);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace octavo::tools
