// A library for LD_PRELOAD that logs a program's calls about files and makes chosen ones fail, as a bad disk would: for tests of what is left then.
//
//   OCTAVO_FILE_FAULTS="fsync:2:5 rename:1:kill"   the 2nd fsync fails with errno 5; before the 1st rename SIGKILL ends the program
//   OCTAVO_FILE_FAULTS="fdatasync:3+:5"            the 3rd and all later ones
//   OCTAVO_FILE_LOG=FILE                           a line a call: "fsync /folder/name"
//
// It knows open (for writing), write, ftruncate, fsync, fdatasync and rename; of writes only those to regular files.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Call {
  const char* name;
  std::atomic<long> count{0};
};

Call open_call{"open"}, write_call{"write"}, ftruncate_call{"ftruncate"}, fsync_call{"fsync"},
    fdatasync_call{"fdatasync"}, rename_call{"rename"};

// Straight to the kernel, so that it is not counted.
void Log(const char* name, const char* path) {
  static const char* const log = std::getenv("OCTAVO_FILE_LOG");
  if (!log) return;
  char line[PATH_MAX + 32];
  const int length = std::snprintf(line, sizeof(line), "%s %s\n", name, path);
  const long fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  syscall(SYS_write, fd, line, static_cast<size_t>(length));
  syscall(SYS_close, fd);
}

// Logs and counts the call; true when it is to fail, with errno set.
bool Fails(Call& call, const char* path) {
  const int saved = errno;
  Log(call.name, path);
  const long number = ++call.count;
  static const char* const faults = std::getenv("OCTAVO_FILE_FAULTS");
  const size_t name_size = std::strlen(call.name);
  for (const char* at = faults ? faults : ""; *at; at += std::strcspn(at, " "), at += *at == ' ') {
    if (std::strncmp(at, call.name, name_size) != 0 || at[name_size] != ':') continue;
    char* end = nullptr;
    const long wanted = std::strtol(at + name_size + 1, &end, 10);
    const bool later = *end == '+';
    if (number != wanted && !(later && number > wanted)) continue;
    end += later;
    if (std::strncmp(end, ":kill", 5) == 0) raise(SIGKILL);
    errno = std::atoi(end + 1);
    return true;
  }
  errno = saved;
  return false;
}

bool Fails(Call& call, int fd) {
  char link[64], path[PATH_MAX] = "?";
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const int saved = errno;
  const ssize_t size = readlink(link, path, sizeof(path) - 1);
  if (size > 0) path[size] = '\0';
  errno = saved;
  return Fails(call, path);
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool IsRegular(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  static const auto next = Next<int(const char*, int, ...)>("open");
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) ? va_arg(list, mode_t) : 0;
  va_end(list);
  return (flags & O_ACCMODE) != O_RDONLY && Fails(open_call, path) ? -1 : next(path, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  static const auto next = Next<ssize_t(int, const void*, size_t)>("write");
  return IsRegular(fd) && Fails(write_call, fd) ? -1 : next(fd, bytes, count);
}

int ftruncate(int fd, off_t length) noexcept {
  static const auto next = Next<int(int, off_t)>("ftruncate");
  return Fails(ftruncate_call, fd) ? -1 : next(fd, length);
}

int fsync(int fd) {
  static const auto next = Next<int(int)>("fsync");
  return Fails(fsync_call, fd) ? -1 : next(fd);
}

int fdatasync(int fd) {
  static const auto next = Next<int(int)>("fdatasync");
  return Fails(fdatasync_call, fd) ? -1 : next(fd);
}

int rename(const char* from, const char* to) noexcept {
  static const auto next = Next<int(const char*, const char*)>("rename");
  return Fails(rename_call, to) ? -1 : next(from, to);
}

}  // extern "C"
