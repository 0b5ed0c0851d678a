// A run whose records go to a file: beside FILE stands FILE.run, which holds all that the bytes depend on, so that a broken run can be resumed.
#ifndef OCTAVO_TOOLS_RUN_FILE_H_
#define OCTAVO_TOOLS_RUN_FILE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace octavo::tools {

enum class RunMode { kNew, kForce, kResume };

class RunFile {
 public:
  // Opens the file and takes a lock on it. kNew: it must not exist; kForce: it is emptied; kResume: what FILE.run says is read, if there is one.
  // Something else than a regular file (a device, a named pipe) is written to, but cannot be resumed. Throws Error.
  RunFile(std::string path, RunMode mode);

  // The seed of the run that is resumed.
  std::optional<uint64_t> seed() const;

  // `record`: all that the bytes depend on, two levels of objects at most. A new run writes it to FILE.run; a resumed one throws Error that
  // names the first thing that differs. Then cuts off an unfinished last line. Returns how many lines stay.
  uint64_t Begin(const nlohmann::ordered_json& record);

  int fd() const { return fd_.value; }
  const std::string& path() const { return path_; }

 private:
  struct Descriptor {
    ~Descriptor();
    int value = -1;
  };

  std::string RecordPath() const { return path_ + ".run"; }
  void ReadRecord();
  void WriteRecord(const nlohmann::ordered_json& record) const;
  uint64_t CutToLines();

  const std::string path_;
  Descriptor fd_;
  bool is_regular_ = true;
  std::optional<nlohmann::ordered_json> found_;
};

// Hash of a file's bytes. Throws Error when it cannot be read.
uint64_t HashFile(const std::string& path);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_RUN_FILE_H_
