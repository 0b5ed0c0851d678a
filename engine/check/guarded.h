// A buffer that notices what must not be touched: it ends at an unreadable page and has a known pattern on both sides.
//
//   | 0xA5 … | count elements, all bits set: NaN | at most 63 bytes 0xA5, for alignment | unreadable page |
#ifndef OCTAVO_ENGINE_CHECK_GUARDED_H_
#define OCTAVO_ENGINE_CHECK_GUARDED_H_

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <vector>

namespace octavo::check {

// In place of an alignment: the buffer starts one element behind a multiple of 64 bytes, where every load for aligned vectors faults. What
// is left to the page behind is then up to 63 bytes of pattern.
constexpr size_t kOddStart = 0;

template <typename Value>
class Guarded {
 public:
  // Every element is NaN (all bits set). `alignment` of the start, in bytes, a power of two up to 64, or kOddStart.
  explicit Guarded(size_t count, size_t alignment = alignof(Value)) : count_(count) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    // At least 64 bytes of pattern in front, and the slack that alignment leaves behind.
    const size_t usable = (count * sizeof(Value) + 128 + page - 1) / page * page;
    map_bytes_ = usable + page;
    void* map = mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(map);
    end_ = begin_ + usable;
    if (mprotect(end_, page, PROT_NONE) != 0) throw std::bad_alloc();
    std::memset(begin_, kPattern, usable);
    const size_t odd = alignment == kOddStart ? sizeof(Value) : 0, multiple = odd ? 64 : alignment;
    const size_t offset = (usable - count * sizeof(Value) - odd) / multiple * multiple + odd;
    data_ = reinterpret_cast<Value*>(begin_ + offset);
    std::memset(data_, 0xFF, count * sizeof(Value));
  }
  explicit Guarded(const std::vector<Value>& values, size_t alignment = alignof(Value))
      : Guarded(values.size(), alignment) {
    std::copy(values.begin(), values.end(), data());
  }
  ~Guarded() { munmap(begin_, map_bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  Value* data() { return data_; }
  const Value* data() const { return data_; }
  std::span<Value> span() { return {data_, count_}; }
  size_t size() const { return count_; }
  Value& operator[](size_t i) { return data_[i]; }
  const Value& operator[](size_t i) const { return data_[i]; }

  // Whether the pattern around is as it was. On the page behind, the access itself would have ended the program.
  bool Intact() const {
    const auto untouched = [](std::byte b) { return b == std::byte{kPattern}; };
    const auto* first = reinterpret_cast<const std::byte*>(data_);
    return std::all_of(static_cast<const std::byte*>(begin_), first, untouched) &&
           std::all_of(first + count_ * sizeof(Value), static_cast<const std::byte*>(end_), untouched);
  }

 private:
  static constexpr int kPattern = 0xA5;

  size_t count_;
  size_t map_bytes_ = 0;
  std::byte *begin_ = nullptr, *end_ = nullptr;
  Value* data_ = nullptr;
};

}  // namespace octavo::check

#endif  // OCTAVO_ENGINE_CHECK_GUARDED_H_
