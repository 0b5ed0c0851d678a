// Completions in their formats; see completions.h.
#include "tools/completions.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/utf8.h"
#include "tools/command.h"
#include "tools/io.h"
#include "tools/stop.h"

namespace octavo::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

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

struct Stopped {};

}  // namespace

std::string CompletionWriter::LineOf(const GenerateRequest& request, const Completion& completion) const {
  if (format_ == "jsonl") return JsonLine(Record(OriginOf(request), completion));
  return EscapeControls(completion.text) + '\n';
}

void CompletionWriter::Write(const GenerateRequest& request, const Completion& completion) {
  const Origin& origin = OriginOf(request);
  if (format_ != "text") {
    output_.Write(LineOf(request, completion));
  } else if (request.error.empty()) {
    output_.Write(fmt::format("{}{}{}\n", began_ ? "\n" : "", *origin.prompt->text, completion.text));
    began_ = true;
  }
  Count(origin, completion);
  progress_.Show(num_completions_, num_chars_, ShareDone(origin));
}

void CompletionWriter::Skip(const GenerateRequest& request) {
  failed_ |= !request.error.empty();
  progress_.Skip(ShareDone(OriginOf(request)));
}

void CompletionWriter::Stream(const Model& model, const GenerateRequest& request, const RunOptions& options) {
  const Origin& origin = OriginOf(request);
  if (request.error.empty()) WriteOut(*origin.prompt->text);
  uint64_t num_shown = 0;
  const auto show = [&](std::string_view text) {
    WriteOut(text);
    num_shown += DecodeUtf8(text).size();
    if (StopFlag()) throw Stopped();
  };
  try {
    const Completion completion = Generate(model, request, show, options);
    if (options.Abandoned() && completion.finish == Finish::kError) throw Stopped();
    if (request.error.empty()) WriteOut("\n");
    Count(origin, completion);
  } catch (const Stopped&) {
    WriteOut("\n");
    interrupted_ = true;
    num_completions_ = 1;
    num_chars_ = num_shown;
  }
}

std::string CompletionWriter::Totals(double seconds) const {
  return fmt::format("{}{}, {} in {:.3f} s, {:.0f} characters a second", Counted(num_completions_, "completion"),
                     num_failed_ > 0 ? fmt::format(" ({} failed)", num_failed_)
                     : interrupted_  ? " (interrupted)"
                                     : "",
                     Counted(num_chars_, "character"), seconds, static_cast<double>(num_chars_) / seconds);
}

void CompletionWriter::Count(const Origin& origin, const Completion& completion) {
  ++num_completions_;
  num_chars_ += completion.num_chars;
  if (completion.finish != Finish::kError) return;
  ++num_failed_;
  failed_ = true;
  progress_.Clear();
  Complain("{}: {}", reader_.Describe(*origin.prompt), completion.error);
}

}  // namespace octavo::tools
