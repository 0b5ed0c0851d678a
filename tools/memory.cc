// Running out of memory; see memory.h.
#include "tools/memory.h"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

namespace octavo::tools {
namespace {

constexpr size_t kReserveBytes = size_t{1} << 20;
std::atomic<void*> reserve = nullptr;
std::terminate_handler terminate_before = nullptr;

// The allocation that failed fails all the same: the reserve is for the way out.
[[noreturn]] void GiveReserveBack() {
  std::free(reserve.exchange(nullptr));
  throw std::bad_alloc();
}

[[noreturn]] void OnTerminate() {
  static std::atomic<bool> ending = false;
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    if (!ending.exchange(true)) {
      SayOutOfMemory();
      _exit(EXIT_FAILURE);
    }
    for (;;) pause();  // another thread is ending the process
  } catch (...) {
  }
  if (terminate_before) terminate_before();
  std::abort();
}

}  // namespace

void PrepareForLowMemory() {
  reserve = std::malloc(kReserveBytes);
  std::set_new_handler(GiveReserveBack);
  terminate_before = std::set_terminate(OnTerminate);
}

void SayOutOfMemory() noexcept {
  constexpr std::string_view kLine = "octavo: out of memory\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kLine.data(), kLine.size());
}

}  // namespace octavo::tools
