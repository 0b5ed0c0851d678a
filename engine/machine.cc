// CPU name and caches from Linux's /proc and /sys, or from the C library; see machine.h.
#include "engine/machine.h"

#include <unistd.h>

#include <charconv>
#include <map>

#include <fmt/format.h>

#include "engine/system_file.h"

namespace octavo {
namespace {

// "model name" (x86) or "CPU part" (Arm, a number) of the first CPU, with x86's family and model, for virtual machines call several generations by
// one name.
std::string CpuName() {
  std::map<std::string, std::string> values;
  for (const std::string& line : Split(ReadSystemFile("/proc/cpuinfo"), '\n')) {
    if (line.empty()) break;  // the next CPU
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    values[line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1)] = line.substr(colon + 2);
  }
  const std::string& name = values[values.contains("model name") ? "model name" : "CPU part"];
  if (name.empty()) return "unknown";
  if (!values.contains("cpu family")) return name;
  return fmt::format("{} (family {}, model {})", name, values["cpu family"], values["model"]);
}

// "32K", or "" of what is not there.
uint64_t ParseSize(const std::string& text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const char* const unit = std::from_chars(text.data(), end, value).ptr;
  return unit == end ? value : *unit == 'K' ? value << 10 : *unit == 'M' ? value << 20 : value;
}

std::vector<Cache> CachesFromSys() {
  std::vector<Cache> caches;
  for (int i = 0;; ++i) {
    const auto read = [i](const char* name) {
      const std::vector<std::string> words =
          SplitWords(ReadSystemFile(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/{}", i, name)));
      return words.empty() ? "" : words[0];
    };
    const std::string level = read("level");
    if (level.empty()) return caches;
    caches.push_back({static_cast<int>(ParseSize(level)), read("type"), ParseSize(read("size"))});
  }
}

// What the C library knows: many virtual machines leave /sys empty, but let the processor itself be asked.
std::vector<Cache> CachesFromLibrary() {
  std::vector<Cache> caches;
#ifdef _SC_LEVEL1_DCACHE_SIZE  // not in every C library
  const auto add = [&](int level, const char* type, int name) {
    if (const long size = sysconf(name); size > 0) caches.push_back({level, type, static_cast<uint64_t>(size)});
  };
  add(1, "Data", _SC_LEVEL1_DCACHE_SIZE);
  add(1, "Instruction", _SC_LEVEL1_ICACHE_SIZE);
  add(2, "Unified", _SC_LEVEL2_CACHE_SIZE);
  add(3, "Unified", _SC_LEVEL3_CACHE_SIZE);
#endif
  return caches;
}

}  // namespace

Machine DescribeMachine() {
  Machine machine{CpuName(), CachesFromSys()};
  if (machine.caches.empty()) machine.caches = CachesFromLibrary();
  return machine;
}

}  // namespace octavo
