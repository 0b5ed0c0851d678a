// What CPU this is, for reports.
#ifndef OCTAVO_ENGINE_MACHINE_H_
#define OCTAVO_ENGINE_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace octavo {

struct Cache {
  int level = 0;
  std::string type;  // Data, Instruction or Unified
  uint64_t size_bytes = 0;
};

struct Machine {
  std::string cpu_name;       // "unknown" where the system does not tell
  std::vector<Cache> caches;  // of the first CPU; empty where the system does not tell
};

Machine DescribeMachine();

}  // namespace octavo

#endif  // OCTAVO_ENGINE_MACHINE_H_
