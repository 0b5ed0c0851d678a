// The nearest name; see suggest.h.
#include "engine/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "kernels/strict_math.h"

namespace octavo {
namespace {

size_t Distance(std::string_view a, std::string_view b) {
  // Of the first i characters of a to the first j of b: the row of i, and the two before it.
  std::vector<size_t> before_last, last, row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = last;
    last = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string DidYouMean(std::string_view written, const std::vector<std::string>& names) {
  constexpr size_t kLongest = 64, kCharactersAnEdit = 3;
  if (written.size() > kLongest || names.empty()) return "";
  const auto distance = [written](const std::string& name) { return Distance(written, name); };
  const std::string& nearest = *std::ranges::min_element(names, {}, distance);
  const size_t letters = written.size() - std::min(written.find_first_not_of('-'), written.size());
  return distance(nearest) * kCharactersAnEdit <= letters ? fmt::format("; did you mean {}?", nearest) : "";
}

}  // namespace octavo
