// FILE.run; see run_record.h.
#include "tools/run_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/error.h"
#include "engine/json.h"
#include "engine/utf8.h"

namespace octavo::tools {
namespace {

constexpr int kDeepest = 8;
constexpr const char* kMarks = "written";

// All of a regular file, or the first byte too many.
std::string ReadBounded(const std::string& path) {
  // Without waiting, should it be a named pipe.
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const auto fail = [&](const char* what) {
    const int error = errno;
    if (fd >= 0) close(fd);
    throw Error(fmt::format("cannot {} {}: {}", what, QuotePath(path), std::strerror(error)));
  };
  if (fd < 0) fail("open");
  struct stat status;
  if (fstat(fd, &status) != 0) fail("read");
  if (!S_ISREG(status.st_mode)) {
    close(fd);
    throw Error(fmt::format("{} is {}; expected a file", QuotePath(path),
                            S_ISDIR(status.st_mode) ? "a directory" : "not a regular file"));
  }
  std::string text;
  for (ssize_t got = 1; got != 0 && text.size() <= kLargestRunRecord;) {
    constexpr size_t kChunk = size_t{1} << 16;
    const size_t old = text.size();
    text.resize(old + kChunk);
    got = read(fd, text.data() + old, kChunk);
    if (got < 0 && errno != EINTR) fail("read");
    text.resize(old + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  close(fd);
  return text;
}

// In ASCII, so that nothing in it moves a terminal, and not whole: around the first place where the two part.
std::string Excerpt(const std::string& text, size_t parting) {
  constexpr size_t kLongest = 120, kBefore = 40;
  const size_t begin = parting > kLongest - 20 ? parting - kBefore : 0;
  return fmt::format("{}{}{}", begin > 0 ? "…" : "", text.substr(begin, kLongest),
                     text.size() > begin + kLongest ? "…" : "");
}

void Compare(const nlohmann::json& found, const nlohmann::ordered_json& wanted, const std::string& name,
             const std::string& path) {
  if (found.is_object() && wanted.is_object()) {
    for (const auto& [key, value] : wanted.items()) {
      Compare(found.contains(key) ? found[key] : nlohmann::json(), value, name.empty() ? key : name + "." + key, path);
    }
    return;
  }
  const nlohmann::json expected = wanted;
  if (found == expected) return;
  const std::string theirs = found.dump(-1, ' ', true), ours = expected.dump(-1, ' ', true);
  const auto parting = std::mismatch(theirs.begin(), theirs.end(), ours.begin(), ours.end()).first;
  const auto at = static_cast<size_t>(parting - theirs.begin());
  throw Error(fmt::format("cannot resume {}: its {} is {}, that of this run {}; expected the same (see {})",
                          QuotePath(path), name, Excerpt(theirs, at), Excerpt(ours, at), QuotePath(path + ".run")));
}

}  // namespace

std::optional<FoundRun> ReadRunRecord(const std::string& path) {
  const std::string text = ReadBounded(path);
  if (text.size() > kLargestRunRecord) return std::nullopt;
  try {
    FoundRun found{ParseJson(text, "the record", kDeepest), std::nullopt};
    const nlohmann::json& record = *found.record;
    if (!record.is_object() || !record.contains("seed") || !record["seed"].is_number_unsigned()) return std::nullopt;
    if (record.contains(kMarks)) found.marks = ReadMarks(record[kMarks]);
    return found;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string RunRecordText(const nlohmann::ordered_json& record, const std::vector<RunMark>& marks) {
  std::string text = record.dump(2);
  text.resize(text.size() - 2);  // "\n}"
  text += fmt::format(",\n  \"{}\": {}\n}}\n", kMarks, JsonOf(marks).dump());
  if (text.size() > kLargestRunRecord) {
    throw Error(
        fmt::format("the settings of this run take {} bytes in its FILE.run; expected at most {}: fewer or "
                    "shorter texts of --stop",
                    text.size(), kLargestRunRecord));
  }
  return text;
}

void CompareRunRecords(const nlohmann::json& found, const nlohmann::ordered_json& wanted, const std::string& path) {
  Compare(found, wanted, "", path);
}

}  // namespace octavo::tools
