// The two kinds of input that the fuzz target reads and the seed writer writes, and their parts.
//
//   a single-file model    safetensors: length of the header | header | data
//   a directory            kDirectoryMark | config.json | NUL | vocab.json | NUL | model.safetensors
#ifndef OCTAVO_TESTS_FUZZ_INPUTS_H_
#define OCTAVO_TESTS_FUZZ_INPUTS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace octavo {

// Read as a single-file model, this would be a header of 10^18 bytes: no file of the other kind begins so.
constexpr std::string_view kDirectoryMark = "directory\n";

// An input cut at its marks; what is cut off is empty.
struct Input {
  bool is_directory = false;
  std::string_view config, vocabulary;  // of a directory
  std::string_view tensors;             // the safetensors file
};

inline Input SplitInput(std::string_view bytes) {
  if (!bytes.starts_with(kDirectoryMark)) return {false, {}, {}, bytes};
  bytes.remove_prefix(kDirectoryMark.size());
  const auto take = [&bytes] {
    const std::string_view part = bytes.substr(0, bytes.find('\0'));
    bytes.remove_prefix(std::min(bytes.size(), part.size() + 1));
    return part;
  };
  const std::string_view config = take(), vocabulary = take();
  return {true, config, vocabulary, bytes};
}

inline std::string DirectoryInput(std::string_view config, std::string_view vocabulary, std::string_view tensors) {
  return std::string(kDirectoryMark).append(config).append(1, '\0').append(vocabulary).append(1, '\0').append(tensors);
}

inline std::string Container(uint64_t header_bytes, std::string_view header, std::string_view data) {
  return std::string(reinterpret_cast<const char*>(&header_bytes), sizeof(header_bytes)).append(header).append(data);
}

// The parts of an input whose length field tells the truth, to be changed one by one.
struct Parts {
  bool is_directory = false;
  std::string config, vocabulary, header, data;

  static std::optional<Parts> Of(std::string_view bytes) {
    const Input input = SplitInput(bytes);
    uint64_t length = 0;
    if (input.tensors.size() < sizeof(length)) return std::nullopt;
    std::memcpy(&length, input.tensors.data(), sizeof(length));
    const std::string_view rest = input.tensors.substr(sizeof(length));
    if (length > rest.size()) return std::nullopt;
    return Parts{input.is_directory, std::string(input.config), std::string(input.vocabulary),
                 std::string(rest.substr(0, length)), std::string(rest.substr(length))};
  }

  std::string Join() const {
    const std::string tensors = Container(header.size(), header, data);
    return is_directory ? DirectoryInput(config, vocabulary, tensors) : tensors;
  }
};

}  // namespace octavo

#endif  // OCTAVO_TESTS_FUZZ_INPUTS_H_
