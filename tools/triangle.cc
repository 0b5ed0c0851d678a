// The triangle in a terminal; see triangle.h.
#include "tools/triangle.h"

#include <fmt/format.h>
#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <vector>

#include "engine/utf8.h"

namespace octavo::tools {
namespace {

constexpr size_t kColumns = 80;

struct Shade {
  float least;
  const char* mark;
};
constexpr Shade kShades[] = {{0.75f, "█"}, {0.5f, "▓"}, {0.25f, "▒"}, {0.1f, "░"}, {0.02f, "·"}};

const char* ShadeOf(float weight) {
  for (const Shade& shade : kShades) {
    if (weight >= shade.least) return shade.mark;
  }
  return " ";
}

// Columns that terminals give a character, whatever the user's locale: -1 for those that cannot be printed, 0 for those that change others.
int NumColumns(char32_t c) {
  if (c >= 0x20 && c < 0x7F) return 1;
  static const locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (!unicode) return -1;
  const locale_t old = uselocale(unicode);
  const int columns = wcwidth(static_cast<wchar_t>(c));
  uselocale(old);
  return columns;
}

// In one column: itself, or the picture of a control character, or a box.
std::string ColumnOf(char32_t c) {
  constexpr char32_t kPictures = 0x2400, kPictureOfDelete = 0x2421, kBox = 0x25A1;
  std::string mark;
  AppendUtf8(c < 0x20 ? kPictures + c : c == 0x7F ? kPictureOfDelete : NumColumns(c) == 1 ? c : kBox, mark);
  return mark;
}

struct Label {
  std::string text;
  size_t columns;
};

// In as many columns as it takes: itself where that shows, else its escape.
Label LabelOf(char32_t c) {
  if (c == U' ') return {"␣", 1};
  std::string text;
  AppendUtf8(c, text);
  const std::string escaped = EscapeControls(text);
  if (c != U'\\' && escaped != text) return {escaped, escaped.size()};
  const int columns = NumColumns(c);
  if (columns > 0) return {text, static_cast<size_t>(columns)};
  const std::string number = fmt::format("U+{:04X}", static_cast<uint32_t>(c));
  return {number, number.size()};
}

std::string Legend() {
  std::string legend = "share of a row:";
  for (size_t i = std::size(kShades); i-- > 0;) {
    legend += fmt::format("  {} {:.0f}%", kShades[i].mark, 100 * kShades[i].least);
  }
  return legend + " or more\n";
}

}  // namespace

std::string DrawTriangle(std::span<const float> weights, std::u32string_view text) {
  const size_t length = text.size();
  std::vector<Label> labels;
  size_t label_columns = 1;
  for (const char32_t c : text) {
    labels.push_back(LabelOf(c));
    label_columns = std::max(label_columns, labels.back().columns);
  }
  const size_t margin = label_columns + 2, first = length - std::min(length, kColumns - margin);

  std::string drawing = Legend();
  if (first > 0) {
    drawing += fmt::format("left out: characters 1 to {} of {} (see --window, or --format json)\n", first, length);
  }
  drawing += std::string(margin, ' ');
  for (size_t s = first; s < length; ++s) drawing += ColumnOf(text[s]);
  drawing += '\n';
  for (size_t t = first; t < length; ++t) {
    const std::span<const float> row = weights.subspan(t * length, t + 1);
    drawing += labels[t].text + std::string(margin - labels[t].columns, ' ');
    for (size_t s = first; s <= t; ++s) drawing += ShadeOf(row[s]);
    drawing.erase(drawing.find_last_not_of(' ') + 1);
    drawing += '\n';
  }
  return drawing;
}

}  // namespace octavo::tools
