// What tests of the command ask of a run: exit code, messages, records; and the files they hand to it.
#ifndef OCTAVO_TESTS_TESTING_COMMAND_CHECKS_H_
#define OCTAVO_TESTS_TESTING_COMMAND_CHECKS_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/testing/command.h"

namespace octavo::test {

using Json = nlohmann::ordered_json;
using Arguments = std::vector<std::string>;

// A model of the golden data, such as "m8.safetensors" or "modd".
std::string Golden(const std::string& name);

// The entries of the golden data's manifest.json that are files or folders of their own.
std::vector<Json> GoldenManifest();

Arguments operator+(Arguments left, const Arguments& right);

// "a\nb\n" -> {"a", "b"}. Expects that the last line is finished.
std::vector<std::string> Lines(const std::string& text);

// The objects of standard output, one a line. Expects valid JSON in UTF-8 with "index" first.
std::vector<Json> Records(const RunResult& result);

// `key` of each record.
std::vector<Json> Column(const std::vector<Json>& records, const std::string& key);
std::vector<std::string> Texts(const RunResult& result);

// Expects the exit code, an empty standard output, and exactly one line of valid UTF-8 without control characters on standard
// error, which begins with "octavo: " and holds `part`.
void ExpectOneMessage(const RunResult& result, int exit_code, std::string_view part);

// Runs that must succeed, or fail in part (exit 1); what they wrote.
RunResult RunWell(const Arguments& arguments, const RunOptions& options = {});
RunResult RunPartly(const Arguments& arguments, const RunOptions& options = {});

// "'generate' '--seed' '1'", for failure messages.
std::string Show(const Arguments& arguments);

// A folder for one test, gone after it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();

  // Writes a file; returns its path.
  std::string Write(const std::string& name, std::string_view bytes) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_COMMAND_CHECKS_H_
