// Small text files of the system (/proc, /sys), read without streams, which take a lack of memory for the end of the file. Not installed.
#ifndef OCTAVO_ENGINE_SYSTEM_FILE_H_
#define OCTAVO_ENGINE_SYSTEM_FILE_H_

#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// All of it; as far as it can be read, so "" for one that is not there, or a folder. Throws std::bad_alloc.
std::string ReadSystemFile(const std::string& path);

// The parts between separators; nothing follows the last one. Of the whole of a file with '\n', its lines.
std::vector<std::string> Split(std::string_view text, char separator);

// The parts between spaces, tabs and line ends.
std::vector<std::string> SplitWords(std::string_view text);

}  // namespace octavo

#endif  // OCTAVO_ENGINE_SYSTEM_FILE_H_
