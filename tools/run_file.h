// A run whose records go to a file: beside FILE stands FILE.run, which holds all that the bytes depend on, so that a broken run can be resumed.
// While the run writes, FILE is synced every few seconds, and FILE.run is told hashes of what is safe.
#ifndef OCTAVO_TOOLS_RUN_FILE_H_
#define OCTAVO_TOOLS_RUN_FILE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/json.h"
#include "tools/run_marks.h"

namespace octavo::tools {

enum class RunMode { kNew, kForce, kResume };

class RunFile {
 public:
  // Opens the file and takes a lock on it; nothing in it changes yet. kNew: it must not exist, nor a FILE.run that is no record of a run;
  // kForce: it may; kResume: what FILE.run says is read, if there is one. Something else than a regular file (a device, a named pipe) is
  // written to, but cannot be resumed. Throws Error.
  RunFile(std::string path, RunMode mode);
  ~RunFile();

  // The seed of the run that is resumed.
  std::optional<uint64_t> seed() const;

  // `record`: all that the bytes depend on, two levels of objects at most. A new run empties FILE and writes the record to FILE.run, in such
  // an order that whatever breaks can be resumed; a resumed one throws Error that names the first thing that differs, or the first lines of
  // FILE that are not what was written there. Returns how many whole lines there are.
  uint64_t Begin(const nlohmann::ordered_json& record);

  // How many of them are known to be what the run wrote, by their hashes. The others, at most those of the last seconds or of one interval of
  // hashes, are to be computed again and handed to TakeLine. (Where FILE.run is of a version before there were hashes: the last.)
  uint64_t num_checked() const { return num_checked_; }

  // Whether the next of them is `line`, line end included.
  bool TakeLine(std::string_view line);

  // Before the first byte is written: cuts off an unfinished last line, starts to sync.
  void GoOn();

  // Told of all bytes that were written since, in order, from one thread. Throws what syncing threw; the run has been asked to stop then.
  void Wrote(std::string_view bytes);

  // All is written: waits until it is safe. Throws Error.
  void Finish();

  int fd() const { return fd_.value; }
  bool is_regular() const { return is_regular_; }
  const std::string& path() const { return path_; }

 private:
  struct Descriptor {
    ~Descriptor();
    int value = -1;
    std::string made;  // the file, where it was made here and nothing has begun: goes with the descriptor
  };

  std::string RecordPath() const { return path_ + ".run"; }
  void Open(RunMode mode);
  void CheckOldRecord(RunMode mode) const;
  void ReadRecord();
  void WriteRecord(const std::vector<RunMark>& marks, bool to_be_emptied = false) const;
  void Scan(const std::vector<RunMark>& expected);
  void Sync(std::unique_lock<std::mutex>& lock);
  void SyncRegularly();
  void StopSyncing();

  const std::string path_;
  Descriptor fd_;
  bool is_regular_ = true;
  std::optional<JsonDocument> found_;
  std::optional<std::vector<RunMark>> found_marks_;
  uint64_t num_checked_ = 0, checked_bytes_ = 0;
  nlohmann::ordered_json record_;

  std::mutex mutex_;              // for all that follows
  std::condition_variable wake_;  // for the thread that syncs
  RunMarks marks_;
  bool unsynced_ = false, closing_ = false;
  std::chrono::steady_clock::time_point unsynced_since_;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses all of the above
};

// Hash of a file's bytes. Throws Error when it cannot be read.
uint64_t HashFile(const std::string& path);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_RUN_FILE_H_
