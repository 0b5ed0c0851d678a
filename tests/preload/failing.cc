// Preloaded into the command: makes the system refuse a thread or memory at a chosen call. Which one, environment
// variables say:
//
//   OCTAVO_FAIL_THREAD=N     the N-th thread, counted from 1, cannot be started; N+ : nor any after it
//   OCTAVO_FAIL_MALLOC=N     the same for calls of malloc and its kin, counted from the start of main
//   OCTAVO_FAIL_COUNT=FILE   writes how many calls of each there were, as "threads T mallocs M", when the process ends by itself
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

class Failing {
 public:
  void Read(const char* variable) {
    const char* text = std::getenv(variable);
    if (!text) return;
    char* end = nullptr;
    first_ = std::strtoull(text, &end, 10);
    ever_after_ = *end == '+';
  }
  bool IsNext() {
    const unsigned long long number = ++count_;
    return first_ > 0 && (ever_after_ ? number >= first_ : number == first_);
  }
  unsigned long long count() const { return count_; }

 private:
  unsigned long long first_ = 0;
  bool ever_after_ = false;
  std::atomic<unsigned long long> count_ = 0;
};

Failing threads, mallocs;
std::atomic<bool> begun = false;
thread_local bool loading = false;

bool FailsMalloc() {
  if (!begun || loading || !mallocs.IsNext()) return false;
  errno = ENOMEM;
  return true;
}

[[gnu::constructor]] void Begin() {
  threads.Read("OCTAVO_FAIL_THREAD");
  mallocs.Read("OCTAVO_FAIL_MALLOC");
}

[[gnu::destructor]] void End() {
  begun = false;
  const char* path = std::getenv("OCTAVO_FAIL_COUNT");
  if (!path) return;
  char line[100];
  const int size = std::snprintf(line, sizeof(line), "threads %llu mallocs %llu\n", threads.count(), mallocs.count());
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0 || write(fd, line, static_cast<size_t>(size)) != size) _exit(125);
  close(fd);
}

}  // namespace

extern "C" {

// Before it, the dynamic loader and static objects allocate, where no program can help itself.
int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*end)(), void* stack) {
  static int (*real_main)(int, char**, char**);
  real_main = main;
  const auto begin = [](int count, char** arguments, char** environment) {
    begun = true;
    return real_main(count, arguments, environment);
  };
  const auto real = reinterpret_cast<decltype(&__libc_start_main)>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return real(begin, argc, argv, init, fini, end, stack);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return threads.IsNext() ? EAGAIN : real(thread, attributes, start, argument);
}

// Of glibc 2.36 itself, which oneTBB makes look for its allocator: without memory for the message that there is none,
// it crashes.
void* dlopen(const char* file, int mode) {
  static const auto real = reinterpret_cast<decltype(&dlopen)>(dlsym(RTLD_NEXT, "dlopen"));
  loading = true;
  void* library = real(file, mode);
  loading = false;
  return library;
}

void* malloc(size_t size) { return FailsMalloc() ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return FailsMalloc() ? nullptr : __libc_calloc(count, size); }
void* realloc(void* memory, size_t size) { return FailsMalloc() ? nullptr : __libc_realloc(memory, size); }
void* memalign(size_t alignment, size_t size) { return FailsMalloc() ? nullptr : __libc_memalign(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  void* got = memalign(alignment, size);
  if (!got) return ENOMEM;
  *memory = got;
  return 0;
}

}  // extern "C"
