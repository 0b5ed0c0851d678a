// Prompts from flags, lines and JSON lines; see prompts.h.
#include "tools/prompts.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "engine/error.h"
#include "engine/json.h"
#include "engine/utf8.h"

namespace octavo::tools {
namespace {

using Json = nlohmann::json;

[[noreturn]] void FailKey(const std::string& key, const Json& value, std::string_view expected) {
  const std::string found = value.is_structured() ? value.type_name() : Quote(value.dump());
  throw Error(fmt::format("{} is {}; expected {}", Quote(key), found, expected));
}

uint64_t ReadUnsigned(const std::string& key, const Json& value, uint64_t least = 0) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() < least) {
    FailKey(key, value, fmt::format("a whole number of at least {}", least));
  }
  return value.get<uint64_t>();
}

double ReadNumber(const std::string& key, const Json& value) {
  if (!value.is_number()) FailKey(key, value, "a number");
  return value.get<double>();
}

// What an id is, so that it comes back as it was: whole numbers beyond 64 bits are read as a double that need not be the same.
Json ReadId(const std::string& key, const Json& value) {
  if (value.is_structured()) FailKey(key, value, "a string, number or boolean");
  constexpr double kExact = 0x1p53;
  if (value.is_number_float() && !(std::abs(value.get<double>()) < kExact)) {
    throw Error(fmt::format("{} is a number near {}, too large to be handed back exactly; expected it as a string",
                            Quote(key), value.dump()));
  }
  return value;
}

std::vector<std::string> ReadStops(const std::string& key, const Json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array()) FailKey(key, value, "a list of strings");
  std::vector<std::string> stops;
  for (const Json& stop : value) {
    if (!stop.is_string()) FailKey(key, stop, "strings in its list");
    stops.push_back(stop.get<std::string>());
  }
  return stops;
}

}  // namespace

PromptReader::PromptReader(std::vector<std::string> texts, std::optional<Input> input, bool json_lines,
                           PromptDefaults defaults, bool quiet)
    : texts_(std::move(texts)),
      input_(std::move(input)),
      json_lines_(json_lines),
      defaults_(std::move(defaults)),
      unknown_keys_(quiet) {
  if (texts_.empty() && !input_) texts_.emplace_back();
}

std::optional<double> PromptReader::ShareTaken() const {
  if (input_) return input_->ShareTaken();
  return static_cast<double>(next_index_) / static_cast<double>(texts_.size());
}

std::optional<PromptRecord> PromptReader::Next() {
  PromptRecord record;
  record.share_before = ShareTaken();
  if (!TakeNext(record)) return std::nullopt;
  record.share_behind = ShareTaken();
  return record;
}

bool PromptReader::TakeNext(PromptRecord& record) {
  record.index = next_index_;
  record.samples = defaults_.samples;
  record.options = defaults_.options;
  if (next_index_ < texts_.size()) {
    record.text = texts_[next_index_++];
    return true;
  }
  std::optional<std::string> line;
  do {
    if (!input_ || !(line = input_->NextLine())) return false;
    ++line_;
    // A blank line is an empty prompt, but between JSON objects it is nothing.
  } while (json_lines_ && IsBlank(*line));
  ++next_index_;
  record.line = line_;
  if (json_lines_) {
    ReadJson(*line, record);
  } else {
    record.text = std::move(*line);
    if (defaults_.escape) ReadLineEscapes(record);
  }
  return true;
}

void PromptReader::ReadLineEscapes(PromptRecord& record) {
  try {
    record.text = ReadEscapes(*record.text);
  } catch (const Error& error) {
    record.error = error.what();
  }
}

void PromptReader::ReadJson(const std::string& line, PromptRecord& record) {
  try {
    const JsonDocument document = ParseJson(line, "the line");
    const Json& object = *document;
    if (!object.is_object()) throw Error(fmt::format("the line is a JSON {}; expected an object", object.type_name()));
    // First what an error record repeats.
    if (const auto id = object.find("id"); id != object.end()) record.id = ReadId("id", *id);
    const auto text = object.find("prompt");
    if (text == object.end()) throw Error("the line has no 'prompt'");
    if (!text->is_string()) FailKey("prompt", *text, "a string");
    record.text = text->get<std::string>();
    for (const auto& [key, value] : object.items()) {
      if (key == "samples") {
        record.samples = ReadUnsigned(key, value, 1);
      } else if (key == "max_chars") {
        record.options.max_chars = ReadUnsigned(key, value);
      } else if (key == "seed") {
        record.seed = ReadUnsigned(key, value);
      } else if (key == "temperature") {
        record.options.sampling.temperature = ReadNumber(key, value);
      } else if (key == "top_k") {
        record.options.sampling.top_k = ReadUnsigned(key, value);
      } else if (key == "top_p") {
        record.options.sampling.top_p = ReadNumber(key, value);
      } else if (key == "stop") {
        record.options.stops = ReadStops(key, value);
      } else if (key != "id" && key != "prompt") {
        unknown_keys_.Warn(key, input_->name(), line_);
      }
    }
    CheckOptions(record.options);
  } catch (const Error& error) {
    record.error = error.what();
  }
}

std::string PromptReader::Describe(const PromptRecord& record) const {
  return record.line ? fmt::format("{} line {}", input_->name(), *record.line)
                     : fmt::format("prompt {}", record.index + 1);
}

}  // namespace octavo::tools
