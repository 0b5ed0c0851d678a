// A buffer that notices what must not be touched: it ends at an unreadable page, or starts behind one, and has signaling NaN around it.
//
//   | unreadable page | NaN of a known pattern … | count elements, all bits set: NaN | at most 63 bytes of the pattern | unreadable page |
//   | unreadable page | count elements | the pattern … | unreadable page |                                           with kPageStart
//
// The pattern is not a number, so that what is read there shows in results, and a signaling one, so that no arithmetic gives it back.
#ifndef OCTAVO_ENGINE_CHECK_GUARDED_H_
#define OCTAVO_ENGINE_CHECK_GUARDED_H_

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

namespace octavo::check {

// In place of an alignment: the buffer starts one element behind a multiple of 64 bytes, where every load for aligned vectors faults. What
// is left to the page behind is then up to 63 bytes of pattern.
constexpr size_t kOddStart = 0;

// In place of an alignment: the buffer starts at the page behind an unreadable one.
constexpr size_t kPageStart = 1;

template <typename Value>
class Guarded {
 public:
  // Every element is NaN (all bits set). `alignment` of the start, in bytes, a power of two from 4 to 64, kOddStart or kPageStart.
  explicit Guarded(size_t count, size_t alignment = alignof(Value)) : count_(count) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), size = count * sizeof(Value);
    // At least 64 bytes of pattern in front, and the slack that alignment leaves behind.
    const size_t usable = (size + 128 + page - 1) / page * page;
    map_bytes_ = usable + 2 * page;
    map_ = mmap(nullptr, map_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map_ == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(map_) + page;
    end_ = begin_ + usable;
    if (mprotect(begin_, usable, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    for (std::byte* at = begin_; at < end_; at += sizeof(Value)) std::memcpy(at, &kPattern, sizeof(Value));
    const size_t odd = alignment == kOddStart ? sizeof(Value) : 0, multiple = odd ? 64 : alignment;
    const size_t offset = alignment == kPageStart ? 0 : (usable - size - odd) / multiple * multiple + odd;
    data_ = reinterpret_cast<Value*>(begin_ + offset);
    std::memset(data_, 0xFF, size);
  }
  explicit Guarded(const std::vector<Value>& values, size_t alignment = alignof(Value))
      : Guarded(values.size(), alignment) {
    std::copy(values.begin(), values.end(), data());
  }
  ~Guarded() { munmap(map_, map_bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  Value* data() { return data_; }
  const Value* data() const { return data_; }
  std::span<Value> span() { return {data_, count_}; }
  size_t size() const { return count_; }
  Value& operator[](size_t i) { return data_[i]; }
  const Value& operator[](size_t i) const { return data_[i]; }

  // Whether the pattern around is as it was. On the pages beyond, the access itself would have ended the program.
  bool Intact() const {
    const auto* first = reinterpret_cast<const std::byte*>(data_);
    return IsPattern(begin_, first) && IsPattern(first + count_ * sizeof(Value), end_);
  }

 private:
  static_assert(sizeof(Value) == 4 || sizeof(Value) == 8);
  using Pattern = std::conditional_t<sizeof(Value) == 4, uint32_t, uint64_t>;
  static constexpr Pattern kPattern = sizeof(Value) == 4 ? 0x7FA5A5A5 : static_cast<Pattern>(0x7FF5A5A5A5A5A5A5);

  static bool IsPattern(const std::byte* from, const std::byte* to) {
    while (from < to && std::memcmp(from, &kPattern, sizeof(Value)) == 0) from += sizeof(Value);
    return from == to;
  }

  size_t count_;
  size_t map_bytes_ = 0;
  void* map_ = nullptr;
  std::byte *begin_ = nullptr, *end_ = nullptr;  // what can be read and written
  Value* data_ = nullptr;
};

}  // namespace octavo::check

#endif  // OCTAVO_ENGINE_CHECK_GUARDED_H_
