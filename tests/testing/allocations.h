// Counts what a program takes from the heap, by replacing operator new. Include it in the one source file of a test program.
#ifndef OCTAVO_TESTS_TESTING_ALLOCATIONS_H_
#define OCTAVO_TESTS_TESTING_ALLOCATIONS_H_

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace octavo::test {

inline std::atomic<size_t> allocated_bytes = 0;                  // since the start, without what was given back
inline std::atomic<size_t> largest_allocation = 0;               // of a single call
inline std::atomic<size_t> live_bytes = 0, most_live_bytes = 0;  // as the heap rounds them

// What `work` takes in all, whether or not it gives it back, even when it throws.
class AllocationMeter {
 public:
  AllocationMeter() {
    largest_allocation = 0;
    most_live_bytes = live_at_start_;
  }
  size_t total_bytes() const { return allocated_bytes - start_; }
  size_t largest_bytes() const { return largest_allocation; }
  // The most that was taken and not given back at any moment.
  size_t peak_bytes() const { return most_live_bytes - live_at_start_; }

 private:
  const size_t start_ = allocated_bytes, live_at_start_ = live_bytes;
};

inline void Raise(std::atomic<size_t>& most, size_t value) {
  size_t before = most;
  while (before < value && !most.compare_exchange_weak(before, value)) {
  }
}

inline void CountAllocation(size_t size) {
  allocated_bytes += size;
  Raise(largest_allocation, size);
}

// Of memory that is there.
inline void* CountLive(void* memory) {
  if (memory) Raise(most_live_bytes, live_bytes += malloc_usable_size(memory));
  return memory;
}

inline void Free(void* memory) {
  live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

inline void* CountedAllocation(size_t size) {
  CountAllocation(size);
  if (void* memory = CountLive(std::malloc(size > 0 ? size : 1))) return memory;
  throw std::bad_alloc();
}

}  // namespace octavo::test

void* operator new(size_t size) { return octavo::test::CountedAllocation(size); }
void* operator new[](size_t size) { return octavo::test::CountedAllocation(size); }
// That of panels and packed weights. std::aligned_alloc wants a multiple of the alignment.
void* operator new(size_t size, std::align_val_t alignment) {
  octavo::test::CountAllocation(size);
  const auto multiple = static_cast<size_t>(alignment);
  const size_t whole = (size + multiple - 1) / multiple * multiple;
  void* memory = whole >= size ? std::aligned_alloc(multiple, whole > 0 ? whole : multiple) : nullptr;
  if (!octavo::test::CountLive(memory)) throw std::bad_alloc();
  return memory;
}
// The forms that do not throw come along: standard algorithms take temporary buffers with them and give them back below.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  octavo::test::allocated_bytes += size;
  return octavo::test::CountLive(std::malloc(size > 0 ? size : 1));
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return operator new(size, std::nothrow); }
// Not inlined: where GCC inlines these and not operator new, it warns of a pair that does not match.
[[gnu::noinline]] void operator delete(void* memory) noexcept { octavo::test::Free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { octavo::test::Free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { octavo::test::Free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, size_t) noexcept { octavo::test::Free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { octavo::test::Free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept { octavo::test::Free(memory); }

#endif  // OCTAVO_TESTS_TESTING_ALLOCATIONS_H_
