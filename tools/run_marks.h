// What a run has written so far, hashed at the ends of lines: FILE.run keeps it, and who resumes the run can tell whether FILE still begins so.
#ifndef OCTAVO_TOOLS_RUN_MARKS_H_
#define OCTAVO_TOOLS_RUN_MARKS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "engine/hash.h"

namespace octavo::tools {

// The first `bytes` bytes, which are `lines` whole lines.
struct RunMark {
  uint64_t bytes = 0, lines = 0, hash = 0;
  bool operator==(const RunMark&) const = default;
};

class RunMarks {
 public:
  // The bytes behind those before; lines may come in pieces.
  void Add(std::string_view bytes);

  // All that was added, up to the middle of a line.
  RunMark now() const { return {num_bytes_, num_lines_, hash_.value()}; }

  // Forgets the beginning of a line whose end has not come.
  void DropUnfinished();

  // Up to the end of the last whole line, and of the one before it.
  const RunMark& last() const { return last_; }
  uint64_t last_line_begin() const { return last_line_begin_; }

  // At most 512, evenly spaced by lines, then the last.
  std::vector<RunMark> All() const;

 private:
  void EndLine();

  Fnv1a hash_, last_hash_;
  uint64_t num_bytes_ = 0, num_lines_ = 0, last_line_begin_ = 0;
  RunMark last_{0, 0, Fnv1a().value()};
  uint64_t spacing_ = 1;  // marks stand at its multiples
  std::vector<RunMark> marks_;
};

// [[bytes, lines, "hash"], …], and back; Error, without saying where, when it is something else.
nlohmann::ordered_json JsonOf(const std::vector<RunMark>& marks);
std::vector<RunMark> ReadMarks(const nlohmann::json& marks);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_RUN_MARKS_H_
