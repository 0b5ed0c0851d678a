// FNV-1a, 64 bits: tells changed data, not forged data.
#ifndef OCTAVO_ENGINE_HASH_H_
#define OCTAVO_ENGINE_HASH_H_

#include <cstdint>
#include <string_view>

namespace octavo {

class Fnv1a {
 public:
  void Add(std::string_view bytes) {
    for (const char byte : bytes) value_ = (value_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_HASH_H_
