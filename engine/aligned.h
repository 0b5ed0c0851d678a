// Vectors of numbers whose data starts at a multiple of 64 bytes, as the kernels want panels and packed weights.
#ifndef OCTAVO_ENGINE_ALIGNED_H_
#define OCTAVO_ENGINE_ALIGNED_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "kernels/panel.h"

namespace octavo {

template <typename T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{kPanelAlignment};

  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U>&) {}
  template <typename U>
  struct rebind {
    using other = AlignedAllocator<U>;
  };

  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kAlignment)); }
  void deallocate(T* data, size_t) { ::operator delete(data, kAlignment); }
  bool operator==(const AlignedAllocator&) const { return true; }
};

using AlignedFloats = std::vector<float, AlignedAllocator<float>>;

// Numbers that hold anything at first: the system gives large blocks of memory page by page, as they are first written, in large pages where it can.
template <typename T>
class Untouched {
 public:
  Untouched() = default;
  explicit Untouched(size_t count) : data_(AlignedAllocator<T>().allocate(count)), size_(count) {
    constexpr uintptr_t kLargePage = uintptr_t{2} << 20;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(data()),
                    first = (begin + kLargePage - 1) / kLargePage * kLargePage;
    const uintptr_t end = (begin + count * sizeof(T)) / kLargePage * kLargePage;
    if (end > first) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(T* data) const { AlignedAllocator<T>().deallocate(data, 0); }
  };
  std::unique_ptr<T[], Free> data_;
  size_t size_ = 0;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_ALIGNED_H_
