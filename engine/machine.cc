// CPU name and caches from Linux's /proc and /sys; see machine.h.
#include "engine/machine.h"

#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace octavo {
namespace {

// The value behind "model name :" (x86) or "CPU part :" (Arm, a number) of the first CPU.
std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    for (const std::string_view key : {"model name", "CPU part"}) {
      const size_t colon = line.find(": ");
      if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown";
}

uint64_t ParseSize(const std::string& text) {
  std::istringstream stream(text);
  uint64_t value = 0;
  char unit = '\0';
  stream >> value >> unit;
  return unit == 'K' ? value << 10 : unit == 'M' ? value << 20 : value;
}

}  // namespace

Machine DescribeMachine() {
  Machine machine{CpuName(), {}};
  for (int i = 0;; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    Cache cache;
    std::string size;
    if (!(std::ifstream(folder + "level") >> cache.level)) break;
    std::ifstream(folder + "type") >> cache.type;
    std::ifstream(folder + "size") >> size;
    cache.size_bytes = ParseSize(size);
    machine.caches.push_back(cache);
  }
  return machine;
}

}  // namespace octavo
