// Hashes at the ends of lines; see run_marks.h.
#include "tools/run_marks.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "engine/error.h"

namespace octavo::tools {
namespace {

constexpr size_t kMost = 512;

uint64_t ReadHash(const std::string& text) {
  uint64_t hash = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (code != std::errc() || end != text.data() + text.size()) throw Error("a hash is not hexadecimal");
  return hash;
}

}  // namespace

void RunMarks::Add(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end == bytes.npos ? end : end + 1);
    hash_.Add(piece);
    num_bytes_ += piece.size();
    if (end != bytes.npos) EndLine();
    bytes.remove_prefix(piece.size());
  }
}

void RunMarks::EndLine() {
  ++num_lines_;
  last_line_begin_ = last_.bytes;
  last_ = now();
  last_hash_ = hash_;
  if (num_lines_ % spacing_ != 0) return;
  if (marks_.size() == kMost) {
    spacing_ *= 2;
    std::erase_if(marks_, [&](const RunMark& mark) { return mark.lines % spacing_ != 0; });
    if (num_lines_ % spacing_ != 0) return;
  }
  marks_.push_back(last_);
}

void RunMarks::DropUnfinished() {
  hash_ = last_hash_;
  num_bytes_ = last_.bytes;
}

std::vector<RunMark> RunMarks::All() const {
  std::vector<RunMark> all = marks_;
  if (last_.lines > 0 && (all.empty() || all.back() != last_)) all.push_back(last_);
  return all;
}

nlohmann::ordered_json JsonOf(const std::vector<RunMark>& marks) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const RunMark& mark : marks) list.push_back({mark.bytes, mark.lines, fmt::format("{:016x}", mark.hash)});
  return list;
}

std::vector<RunMark> ReadMarks(const nlohmann::json& list) {
  if (!list.is_array()) throw Error("the marks are no list");
  std::vector<RunMark> marks;
  for (const auto& mark : list) {
    if (!mark.is_array() || mark.size() != 3 || !mark[0].is_number_unsigned() || !mark[1].is_number_unsigned() ||
        !mark[2].is_string()) {
      throw Error("a mark is not bytes, lines and hash");
    }
    const RunMark before = marks.empty() ? RunMark() : marks.back();
    marks.push_back({mark[0], mark[1], ReadHash(mark[2].get<std::string>())});
    if (marks.back().bytes <= before.bytes) throw Error("marks are out of order");
  }
  return marks;
}

}  // namespace octavo::tools
