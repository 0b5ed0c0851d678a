// A line on standard error that says how far a run is, when somebody watches.
#ifndef OCTAVO_TOOLS_PROGRESS_H_
#define OCTAVO_TOOLS_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::tools {

class Progress {
 public:
  // `noun`: what is counted. Shows nothing unless `wanted` and standard error is a terminal.
  Progress(bool wanted, std::string noun);

  // Clears the line.
  ~Progress();

  // So many are done, with so many characters; `share` of the whole where it is known. Draws at most ten times a second, from the second
  // second on. One thread at a time.
  void Show(uint64_t done, uint64_t characters, std::optional<double> share);

  // So much of the whole was done before this run. Before the first Show.
  void Skip(std::optional<double> share) { skipped_ = share.value_or(0); }

  void Clear();

  // Whether it may be drawn.
  bool shown() const { return shown_; }

 private:
  using Clock = std::chrono::steady_clock;

  const bool shown_;
  const std::string noun_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point next_;
  double skipped_ = 0;
  bool drawn_ = false;
};

// "[#####     ]  50%  1200 completions, 1.9 M characters/s, 0:41 left", without the bar where the share is not known. `seconds` brought it from
// `skipped` to `share`.
std::string ProgressLine(std::string_view noun, uint64_t done, uint64_t characters, std::optional<double> share,
                         double skipped, double seconds);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_PROGRESS_H_
