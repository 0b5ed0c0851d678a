// How far a run is; see progress.h.
#include "tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace octavo::tools {
namespace {

std::string Rate(double per_second) {
  if (per_second >= 1e6) return fmt::format("{:.2f} M ", per_second / 1e6);
  if (per_second >= 1e4) return fmt::format("{:.0f} k ", per_second / 1e3);
  return fmt::format("{:.0f} ", per_second);
}

std::string Duration(double seconds) {
  const auto whole = static_cast<uint64_t>(std::min(seconds, 3.6e9));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

std::string ProgressLine(std::string_view noun, uint64_t done, uint64_t characters, std::optional<double> share,
                         double skipped, double seconds) {
  constexpr size_t kWidth = 20;
  std::string line;
  if (share) {
    const double part = std::clamp(*share, 0.0, 1.0);
    const auto filled = static_cast<size_t>(part * kWidth);
    line = fmt::format("[{}{}] {:3.0f}%  ", std::string(filled, '#'), std::string(kWidth - filled, ' '), 100 * part);
  }
  line += fmt::format("{} {}, {}characters/s", done, noun, Rate(static_cast<double>(characters) / seconds));
  if (share && *share > skipped) {
    line += fmt::format(", {} left", Duration(seconds * std::max(1 - *share, 0.0) / (*share - skipped)));
  }
  return line;
}

Progress::Progress(bool wanted, std::string noun)
    : shown_(wanted && isatty(STDERR_FILENO)), noun_(std::move(noun)), next_(began_ + std::chrono::seconds(1)) {}

Progress::~Progress() { Clear(); }

void Progress::Show(uint64_t done, uint64_t characters, std::optional<double> share) {
  if (!shown_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const std::string line = "\r\x1b[K" + ProgressLine(noun_, done, characters, share, skipped_, seconds);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void Progress::Clear() {
  if (std::exchange(drawn_, false)) std::fputs("\r\x1b[K", stderr);
}

}  // namespace octavo::tools
