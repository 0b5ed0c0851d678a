// Checks of what the command wrote; see command_checks.h.
#include "tests/testing/command_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "engine/utf8.h"

namespace octavo::test {

std::string Golden(const std::string& name) { return OCTAVO_TEST_DATA "/golden/" + name; }

std::vector<Json> GoldenManifest() {
  std::ifstream file(Golden("manifest.json"));
  std::vector<Json> entries;
  for (const Json& entry : Json::parse(file)) {
    if (std::filesystem::exists(Golden(entry["model"].get<std::string>()))) entries.push_back(entry);
  }
  return entries;
}

Arguments operator+(Arguments left, const Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

std::vector<std::string> Lines(const std::string& text) {
  EXPECT_TRUE(text.empty() || text.ends_with('\n')) << text;
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<Json> Records(const RunResult& result) {
  EXPECT_EQ(ReplaceInvalidUtf8(result.out), result.out);
  std::vector<Json> records;
  for (const std::string& line : Lines(result.out)) {
    Json record = Json::parse(line, nullptr, false);
    EXPECT_TRUE(record.is_object() && line.starts_with("{\"index\":")) << line;
    records.push_back(std::move(record));
  }
  return records;
}

std::vector<Json> Column(const std::vector<Json>& records, const std::string& key) {
  std::vector<Json> values;
  for (const Json& record : records) values.push_back(record.at(key));
  return values;
}

std::vector<std::string> Texts(const RunResult& result) {
  std::vector<std::string> texts;
  for (const Json& record : Records(result)) texts.push_back(record.at("text").get<std::string>());
  return texts;
}

void ExpectOneMessage(const RunResult& result, int exit_code, std::string_view part) {
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, exit_code);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(Lines(result.err).size(), 1u) << result.err;
  EXPECT_TRUE(result.err.starts_with("octavo: ")) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err << "lacks: " << part;
  EXPECT_EQ(ReplaceInvalidUtf8(result.err), result.err);
  EXPECT_EQ(std::count_if(result.err.begin(), result.err.end(), [](char c) { return c >= 0 && c < ' '; }), 1)
      << "only the line end: " << result.err;
}

RunResult RunWell(const Arguments& arguments, const RunOptions& options) {
  RunResult result = RunOctavo(arguments, options);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 0) << Show(arguments) << '\n' << result.err;
  return result;
}

RunResult RunPartly(const Arguments& arguments, const RunOptions& options) {
  RunResult result = RunOctavo(arguments, options);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 1) << Show(arguments) << '\n' << result.err;
  return result;
}

std::string Show(const Arguments& arguments) {
  std::string text;
  for (const std::string& argument : arguments) text += " '" + argument + "'";
  return text;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "octavo_test_XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a folder in " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::Write(const std::string& name, std::string_view bytes) const {
  const std::filesystem::path path = path_ / name;
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
  return path.string();
}

}  // namespace octavo::test
