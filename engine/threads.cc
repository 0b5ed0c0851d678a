// The default number of threads; see threads.h.
#include "engine/threads.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/fail.h"
#include "engine/system_file.h"
#include "engine/utf8.h"

namespace octavo {
namespace {

ThreadCount AffinityThreads() {
  const auto counted = [](int count) { return Counted(static_cast<uint64_t>(count), "CPU"); };
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    const int count = std::max(1, CPU_COUNT(&set));
    return {count, fmt::format("{} in the affinity mask", counted(count))};
  }
  // More CPUs than the mask can name.
  const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return {count, counted(count)};
}

// ---- control groups: /proc says where the process stands and where that can be read ----
//
//   /proc/self/cgroup:     4:cpu,cpuacct:/docker/1f      v1: number, controllers, the group's path within its hierarchy
//                          0::/system.slice/a.service    v2
//   /proc/self/mountinfo:  31 30 0:28 /docker/1f /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
//                                     root       mount point           type   source options

enum class CgroupVersion { kV1 = 1, kV2 = 2 };

struct CpuQuota {
  double cpus;
  CgroupVersion version;
};

struct Mount {
  CgroupVersion version;
  std::string root, point;  // the group that is mounted, and where
};

// Whether a list such as "rw,cpu,cpuacct" names the controller of CPU time.
bool NamesCpu(const std::string& list) {
  const std::vector<std::string> names = Split(list, ',');
  return std::find(names.begin(), names.end(), "cpu") != names.end();
}

// Spaces and the like stand as \040 in mountinfo.
std::string ReadOctal(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '\\' && i + 3 < text.size() && std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3) {
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<Mount> CpuMounts(const std::string& root) {
  std::vector<Mount> mounts;
  for (const std::string& line : Split(ReadSystemFile(root + "/proc/self/mountinfo"), '\n')) {
    const std::vector<std::string> fields = Split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) continue;
    const bool v2 = dash[1] == "cgroup2";
    if (!v2 && !(dash[1] == "cgroup" && NamesCpu(dash[3]))) continue;
    mounts.push_back({v2 ? CgroupVersion::kV2 : CgroupVersion::kV1, ReadOctal(fields[3]), ReadOctal(fields[4])});
  }
  return mounts;
}

// The process's group in the hierarchy that has CPU time.
std::optional<std::string> GroupOf(CgroupVersion version, const std::string& root) {
  for (const std::string& line : Split(ReadSystemFile(root + "/proc/self/cgroup"), '\n')) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool wanted = version == CgroupVersion::kV2 ? line.starts_with("0::") : NamesCpu(controllers);
    if (wanted) return line.substr(second + 1);
  }
  return std::nullopt;
}

// `group` seen from `ancestor`: "/a/b" from "/a" is "/b"; nullopt where it does not lie below, or outside of what this process may see ("/../b").
std::optional<std::string> Below(const std::string& ancestor, const std::string& group) {
  const std::string prefix = ancestor == "/" ? "" : ancestor;
  const std::string rest = group == "/" ? "" : group;
  if (!rest.starts_with(prefix) || (rest + '/').find("/../") != rest.npos) return std::nullopt;
  if (rest.size() > prefix.size() && rest[prefix.size()] != '/') return std::nullopt;
  return rest.substr(prefix.size());
}

// Quota over period; nullopt unless both are whole numbers above 0: "max" and -1 say that there is no quota.
std::optional<double> ParseQuota(const std::string& text) {
  const std::vector<std::string> words = SplitWords(text);
  if (words.size() != 2) return std::nullopt;
  int64_t numbers[2];
  for (size_t i = 0; i < 2; ++i) {
    const char* end = words[i].data() + words[i].size();
    const auto [stop, code] = std::from_chars(words[i].data(), end, numbers[i]);
    if (code != std::errc() || stop != end || numbers[i] <= 0) return std::nullopt;
  }
  return static_cast<double>(numbers[0]) / static_cast<double>(numbers[1]);
}

std::optional<double> QuotaOf(CgroupVersion version, const std::string& folder) {
  return ParseQuota(version == CgroupVersion::kV2 ? ReadSystemFile(folder + "/cpu.max")
                                                  : ReadSystemFile(folder + "/cpu.cfs_quota_us") + ' ' +
                                                        ReadSystemFile(folder + "/cpu.cfs_period_us"));
}

// The smallest quota of the process's group and all groups above it, as far as they can be seen. Where the group itself cannot, as in a
// container that sees its host's path but only its own part of the tree, what is mounted counts.
std::optional<CpuQuota> SmallestQuota(const std::string& root) {
  std::optional<CpuQuota> smallest;
  for (const Mount& mount : CpuMounts(root)) {
    const std::optional<std::string> group = GroupOf(mount.version, root);
    if (!group) continue;
    std::string below = Below(mount.root, *group).value_or("");
    for (;; below.resize(below.rfind('/'))) {
      const std::optional<double> cpus = QuotaOf(mount.version, root + mount.point + below);
      if (cpus && !(smallest && smallest->cpus <= *cpus)) smallest = {*cpus, mount.version};
      if (below.empty()) break;
    }
  }
  return smallest;
}

}  // namespace

ThreadCount DefaultThreads(const std::string& root) {
  ThreadCount threads = AffinityThreads();
  if (const std::optional<CpuQuota> quota = SmallestQuota(root)) {
    threads.count = static_cast<int>(std::min<double>(threads.count, std::ceil(quota->cpus)));
    threads.reason += fmt::format(", a CPU quota of {} (cgroup v{})", std::round(quota->cpus * 1000) / 1000,
                                  static_cast<int>(quota->version));
  }
  return threads;
}

int ChooseThreads(int requested) {
  const int most = std::max(256, 4 * AffinityThreads().count);
  if (requested < 0 || requested > most) Fail("threads is {}; expected 0 (automatic) to {}", requested, most);
  return requested == 0 ? DefaultThreads().count : requested;
}

}  // namespace octavo
