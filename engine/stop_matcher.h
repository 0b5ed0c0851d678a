// Finds the end of a text that grows character by character: where a stop string is complete, and what can already be shown.
#ifndef OCTAVO_ENGINE_STOP_MATCHER_H_
#define OCTAVO_ENGINE_STOP_MATCHER_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace octavo {

class StopMatcher {
 public:
  explicit StopMatcher(std::span<const std::string> stops) : stops_(stops) {}

  // Bytes to cut off the end of `text`, whose last character is new: the longest stop string that it ends with, which is the one
  // that starts leftmost; 0 when none does. UTF-8 makes a match of bytes a match of characters.
  size_t CutBytes(std::string_view text) const {
    size_t cut = 0;
    for (const std::string& stop : stops_) {
      if (text.ends_with(stop)) cut = std::max(cut, stop.size());
    }
    return cut;
  }

  // Bytes at the end of `text` that a stop string may still cut off: its longest suffix that begins one.
  size_t HeldBackBytes(std::string_view text) const {
    size_t held = 0;
    for (const std::string& stop : stops_) {
      for (size_t n = std::min(stop.size() - 1, text.size()); n > held; --n) {
        if (text.ends_with(std::string_view(stop).substr(0, n))) held = n;
      }
    }
    return held;
  }

 private:
  std::span<const std::string> stops_;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_STOP_MATCHER_H_
