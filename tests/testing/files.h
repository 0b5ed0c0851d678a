// Whole files in and out, for tests of what a command leaves behind.
#ifndef OCTAVO_TESTS_TESTING_FILES_H_
#define OCTAVO_TESTS_TESTING_FILES_H_

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace octavo::test {

// Nothing where there is no file.
inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline size_t FileBytes(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : bytes;
}

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_FILES_H_
