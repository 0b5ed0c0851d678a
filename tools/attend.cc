// octavo attend: what each head of a model reads in a text, as a table with a triangle, as JSON or as a page.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/attention.h"
#include "engine/error.h"
#include "engine/utf8.h"
#include "tools/attend/page.h"
#include "tools/command.h"
#include "tools/io.h"
#include "tools/same_file.h"
#include "tools/triangle.h"

namespace octavo::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Flags : CommonFlags {
  std::string text, format = "table", html;
  std::optional<uint64_t> window, layer, head;  // layer and head from 1
  bool force = false;
};

// TEXT's characters, or those of the window.
std::vector<TokenId> ReadText(const Model& model, const Flags& flags) {
  std::vector<TokenId> ids;
  try {
    ids = model.vocabulary().Encode(flags.text);
  } catch (const Error& error) {
    throw UsageError(fmt::format("TEXT: {}", error.what()));
  }
  if (ids.empty()) throw UsageError("TEXT is empty; expected at least one character");
  const size_t context = model.config().context_length;
  if (!flags.window && ids.size() > context) {
    throw UsageError(
        fmt::format("TEXT has {} characters, more than the model's context of {}; with --window N, from 0, "
                    "characters N to N + {} are read",
                    ids.size(), context, context - 1));
  }
  const uint64_t begin = flags.window.value_or(0);
  if (begin >= ids.size()) {
    throw UsageError(fmt::format("--window: {} is behind TEXT, which has {}; expected 0 to {}", begin,
                                 Counted(ids.size(), "character"), ids.size() - 1));
  }
  const auto first = ids.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(std::min<uint64_t>(context, ids.size() - begin))};
}

void CheckNumber(const char* flag, std::optional<uint64_t> number, uint64_t most, const char* what) {
  if (!number || *number <= most) return;
  throw UsageError(fmt::format("{}: {} is too large; the model has {}", flag, *number, Counted(most, what)));
}

// A mean over all positions but the first, where there are others.
OrderedJson MeanOf(double mean, const HeadStatistics& statistics) {
  return statistics.num_previous > 0 ? OrderedJson(mean) : OrderedJson(nullptr);
}

OrderedJson RowsOf(std::span<const float> weights, size_t length) {
  OrderedJson rows = OrderedJson::array();
  for (size_t t = 0; t < length; ++t) {
    OrderedJson row = OrderedJson::array();
    // In the fewest digits that give the float back.
    for (const float x : weights.subspan(t * length, t + 1)) row.push_back(ParseDouble(fmt::format("{}", x)));
    rows.push_back(std::move(row));
  }
  return rows;
}

// All heads, or those that --layer and --head leave.
OrderedJson JsonOf(const Flags& flags, const std::string& text, const Attention& attention,
                   std::optional<uint64_t> only_layer, std::optional<uint64_t> only_head) {
  OrderedJson heads = OrderedJson::array();
  for (size_t i = 0; i < attention.statistics.size(); ++i) {
    const size_t layer = i / attention.num_heads, head = i % attention.num_heads;
    if (only_layer.value_or(layer + 1) != layer + 1 || only_head.value_or(head + 1) != head + 1) continue;
    const HeadStatistics& statistics = attention.StatisticsOf(layer, head);
    heads.push_back({{"layer", layer + 1},
                     {"head", head + 1},
                     {"previous_largest", statistics.previous_largest},
                     {"previous_positions", statistics.num_previous},
                     {"space_largest", statistics.space_largest},
                     {"space_positions", statistics.num_inside},
                     {"recent_share", MeanOf(statistics.recent_share, statistics)},
                     {"mean_distance", MeanOf(statistics.mean_distance, statistics)},
                     {"weights", RowsOf(attention.WeightsOf(layer, head), attention.length)}});
  }
  return {{"model", ReplaceInvalidUtf8(flags.model)},
          {"text", text},
          {"window", flags.window.value_or(0)},
          {"chars", attention.length},
          {"layers", attention.num_layers},
          {"heads_per_layer", attention.num_heads},
          {"heads", std::move(heads)}};
}

std::string TableOf(const Attention& attention) {
  std::string table =
      "              largest weight on        weight on itself    mean distance\n"
      "layer  head   previous   word's space  and the two before  back\n";
  for (size_t i = 0; i < attention.statistics.size(); ++i) {
    const HeadStatistics& head = attention.statistics[i];
    const auto mean = [&](double value, const char* unit) {
      return head.num_previous > 0 ? fmt::format("{:.1f}{}", value, unit) : "-";
    };
    table += fmt::format("{:>5}  {:>4}   {:<9}  {:<12}  {:<18}  {}\n", i / attention.num_heads + 1,
                         i % attention.num_heads + 1, fmt::format("{} of {}", head.previous_largest, head.num_previous),
                         fmt::format("{} of {}", head.space_largest, head.num_inside),
                         mean(100 * head.recent_share, "%"), mean(head.mean_distance, ""));
  }
  return table;
}

// Nothing that is written may be what is read, or there already.
void CheckFiles(const Flags& flags) {
  InputFiles inputs;
  inputs.AddModel(flags.model);
  inputs.RefuseStandardError();
  if (flags.html.empty() || flags.html == "-") return inputs.RefuseStandardOutput();
  inputs.RefuseAsOutput(flags.html, "--html");
  RefuseToOverwrite(flags.html, flags.force);
}

int Run(const Flags& flags) {
  if (flags.force && flags.html.empty()) throw UsageError("--force: expected it with --html FILE");
  int num_threads = ThreadsFrom(flags);
  ApplyTarget(flags);
  CheckFiles(flags);
  const Model model = Model::Open(flags.model);
  CheckNumber("--layer", flags.layer, model.config().num_layers, "layer");
  CheckNumber("--head", flags.head, model.config().num_heads, "head");
  const std::vector<TokenId> ids = ReadText(model, flags);
  const Attention attention =
      Attend(model, ids, {.num_threads = num_threads, .on_fewer_threads = OnFewerThreads(num_threads, flags.quiet)});
  std::string text;
  for (const TokenId id : ids) text += model.vocabulary().text(id);

  const uint64_t layer = flags.layer.value_or(1), head = flags.head.value_or(1);
  if (!flags.html.empty()) {
    const std::string page = AttendPage(JsonOf(flags, text, attention, {}, {}), layer, head);
    if (flags.html == "-") {
      WriteOut(page);
      return 0;
    }
    WriteFile(flags.html, page, flags.force);
    if (!flags.quiet) Complain("wrote {} ({} KB); open it in a browser", QuotePath(flags.html), page.size() / 1000);
  } else if (flags.format == "json") {
    WriteOut(JsonLine(JsonOf(flags, text, attention, flags.layer, flags.head)));
  } else {
    WriteOut(fmt::format("{}\nlayer {}, head {}: each row reads the characters above it\n{}", TableOf(attention), layer,
                         head, DrawTriangle(attention.WeightsOf(layer - 1, head - 1), DecodeUtf8(text))));
  }
  return 0;
}

}  // namespace

void AddAttendCommand(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("attend", "Show what each attention head reads");
  command.footer(
      "For each head: at how many positions the previous character gets the largest weight; at how many, behind a "
      "word's\n"
      "first letter, the space before the word does; the mean weight on a character itself and the two before it; and "
      "how\n"
      "far back the weight lies on average. Layers and heads are counted from 1.\n"
      "Examples:\n"
      "  octavo attend \"The bag didn't fit in the car because it was too small\"\n"
      "  octavo attend 'To be, or not to be' --layer 1 --head 2 --format json\n"
      "  octavo attend 'To be, or not to be' --html page.html");
  auto flags = std::make_shared<Flags>();
  const auto number = [](std::optional<uint64_t>& value, uint64_t least) {
    return [&value, least](const std::string& text) { value = ParseUnsigned(text, least); };
  };
  FlagAdder add(command);
  add.Group("Input");
  add.AddParsed("TEXT", "", "what the model reads, at most its context",
                [flags](const std::string& text) { flags->text = text; })
      ->required();
  add.AddParsed("--window", "N",
                "of a longer text: start at character N, from 0, and\ntake as many as the context holds",
                number(flags->window, 0));
  add.Group("Output");
  add.AddParsed("--layer", "N", "of the triangle, or the only one in JSON (default 1;\nin JSON all)",
                number(flags->layer, 1));
  add.AddParsed("--head", "N", "likewise", number(flags->head, 1));
  add.AddChoice("--format", flags->format, {"table", "json"}, "a row a head and a triangle, or every weight");
  add.AddText("--html", "FILE", flags->html, "write a page that shows it all there instead; - is\nstandard output");
  add.AddSwitch("--force", flags->force, "overwrite FILE");
  add.AddCommon(*flags);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace octavo::tools
