// FILE.run: reading it without trusting it, and telling what differs.
#ifndef OCTAVO_TOOLS_RUN_RECORD_H_
#define OCTAVO_TOOLS_RUN_RECORD_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/json.h"
#include "tools/run_marks.h"

namespace octavo::tools {

// More is no record of a run.
constexpr size_t kLargestRunRecord = size_t{16} << 20;

struct FoundRun {
  JsonDocument record;
  std::optional<std::vector<RunMark>> marks;  // versions before there were any wrote none
};

// What FILE.run holds; nullopt when that is not the record of a run, also when it is too large or nests too deeply. Throws Error when it is no
// regular file or cannot be read.
std::optional<FoundRun> ReadRunRecord(const std::string& path);

// The text of such a file. Throws Error when it would be too large to be read again.
std::string RunRecordText(const nlohmann::ordered_json& record, const std::vector<RunMark>& marks);

// Throws Error for the first thing in which a record differs from that of this run; `path` is FILE.
void CompareRunRecords(const nlohmann::json& found, const nlohmann::ordered_json& wanted, const std::string& path);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_RUN_RECORD_H_
