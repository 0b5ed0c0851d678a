// A buffer that notices what must not be touched: it ends at an unreadable page and has a known pattern in front.
//
//   | 0xA5 … pattern … | count elements, all bits set: NaN | unreadable page |
#ifndef OCTAVO_TESTS_TESTING_GUARDED_H_
#define OCTAVO_TESTS_TESTING_GUARDED_H_

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

namespace octavo::test {

template <typename Value>
class Guarded {
 public:
  explicit Guarded(size_t count) : count_(count) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    // At least 64 bytes of pattern.
    usable_bytes_ = (count * sizeof(Value) + 64 + page - 1) / page * page;
    map_bytes_ = usable_bytes_ + page;
    void* map = mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw std::runtime_error("mmap failed");
    begin_ = static_cast<std::byte*>(map);
    if (mprotect(begin_ + usable_bytes_, page, PROT_NONE) != 0) throw std::runtime_error("mprotect failed");
    std::memset(begin_, kPattern, usable_bytes_);
    std::memset(data(), 0xFF, count * sizeof(Value));
  }
  explicit Guarded(const std::vector<Value>& values) : Guarded(values.size()) {
    std::copy(values.begin(), values.end(), data());
  }
  ~Guarded() { munmap(begin_, map_bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  Value* data() { return reinterpret_cast<Value*>(begin_ + usable_bytes_) - count_; }
  std::span<Value> span() { return {data(), count_}; }
  size_t size() const { return count_; }

  // Whether the pattern in front is as it was. Behind the end, the access itself would have ended the program.
  ::testing::AssertionResult Intact() const {
    for (size_t i = 0; i < usable_bytes_ - count_ * sizeof(Value); ++i) {
      if (begin_[i] != std::byte{kPattern}) return ::testing::AssertionFailure() << "wrote in front of the buffer";
    }
    return ::testing::AssertionSuccess();
  }

 private:
  static constexpr int kPattern = 0xA5;

  size_t count_;
  size_t usable_bytes_ = 0, map_bytes_ = 0;
  std::byte* begin_ = nullptr;
};

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_GUARDED_H_
