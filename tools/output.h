// Where records go: standard output, or a file that is at any moment a prefix of the whole run.
#ifndef OCTAVO_TOOLS_OUTPUT_H_
#define OCTAVO_TOOLS_OUTPUT_H_

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace octavo::tools {

// Writes records in order on a thread of its own, so that a slow disk does not hold up the computing: the first at
// once, what follows together, within 5 ms or when nothing more is on its way. (A thread woken for every record took
// the CPU from the computing where both shared one.) When writing fails, the run is asked to stop. Where the system
// refuses the thread, each record is written when it is handed over.
class Output {
 public:
  // `fd` must stay open; `name` stands in messages.
  Output(int fd, std::string name);

  // Without Close, what is waiting is written and errors are lost.
  ~Output();

  // Blocks while megabytes wait. Throws what writing threw: ClosedPipe, or Error that says why.
  void Write(std::string_view bytes);

  // Nothing more comes for now: what waits is written at once.
  void Flush();

  // Waits until all is written; throws as Write.
  void Close();

 private:
  void Run();
  void WriteAll(std::string_view bytes) const;

  const int fd_;
  const std::string name_;
  std::mutex mutex_;
  std::condition_variable wake_, room_;  // for the thread that writes; for who waits to hand over
  std::string waiting_;
  bool closing_ = false, pausing_ = false, flushing_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_OUTPUT_H_
