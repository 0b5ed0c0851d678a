// Vectors of numbers whose data starts at a multiple of 64 bytes, as the kernels want panels and packed weights.
#ifndef OCTAVO_ENGINE_ALIGNED_H_
#define OCTAVO_ENGINE_ALIGNED_H_

#include <cstddef>
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

}  // namespace octavo

#endif  // OCTAVO_ENGINE_ALIGNED_H_
