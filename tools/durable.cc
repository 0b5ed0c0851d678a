// Syncing and replacing files; see durable.h.
#include "tools/durable.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include "engine/error.h"
#include "engine/utf8.h"
#include "tools/writing.h"

namespace octavo::tools {
namespace {

[[noreturn]] void FailWith(const char* what, const std::string& path, int error) {
  throw Error(fmt::format("cannot {} {}: {}", what, QuotePath(path), std::strerror(error)));
}

bool CanBeSynced(int error) { return error != EINVAL && error != EROFS && error != ENOTSUP; }

void Sync(int fd, const std::string& path, int (*sync)(int) = fsync) {
  while (sync(fd) != 0) {
    if (errno == EINTR) continue;
    if (CanBeSynced(errno)) FailWith("sync", path, errno);
    return;
  }
}

// Writes to the new file `path`. Messages name `shown`, for nobody asked for the other name. On errors the file is removed.
void WriteExclusively(const std::string& path, std::string_view bytes, const std::string& shown,
                      const struct stat* like) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) FailWith(path == shown ? "open" : "make a file beside", shown, errno);
  try {
    // A file system without permissions refuses.
    if (like) [[maybe_unused]]
      const int ignored = fchmod(fd, like->st_mode & 0777);
    if (const int error = WriteFully(fd, bytes)) FailWith("write to", shown, error);
    Sync(fd, shown);
  } catch (...) {
    close(fd);
    unlink(path.c_str());
    throw;
  }
  if (close(fd) == 0) return;
  const int error = errno;
  unlink(path.c_str());
  FailWith("write to", shown, error);
}

std::string UnusedName(const std::string& path) {
  static std::random_device device;
  std::string name;
  struct stat status;
  do {
    name = fmt::format("{}.{:06x}", path, device() & 0xFFFFFF);
  } while (lstat(name.c_str(), &status) == 0);
  return name;
}

}  // namespace

void SyncFile(int fd, const std::string& path) { Sync(fd, path, fdatasync); }

void SyncFolderOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string(),
                    folder = parent.empty() ? "./" : parent;
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // a folder that may be written but not read
  try {
    Sync(fd, folder);
  } catch (...) {
    close(fd);
    throw;
  }
  close(fd);
}

std::string FollowLinks(const std::string& path) {
  std::filesystem::path at = path;
  std::error_code error;
  for (int i = 0; i < 40 && std::filesystem::is_symlink(at, error); ++i) {
    const std::filesystem::path to = std::filesystem::read_symlink(at, error);
    if (error) break;
    at = at.parent_path() / to;  // `to` alone where it is absolute
  }
  return at.string();
}

void WriteNewFile(const std::string& path, std::string_view bytes) {
  WriteExclusively(path, bytes, path, nullptr);
  SyncFolderOf(path);
}

void ReplaceFile(const std::string& path, std::string_view bytes) {
  const std::string target = FollowLinks(path), name = UnusedName(target);
  struct stat status;
  const bool exists = stat(target.c_str(), &status) == 0;
  WriteExclusively(name, bytes, path, exists ? &status : nullptr);
  if (std::rename(name.c_str(), target.c_str()) != 0) {
    const int error = errno;
    unlink(name.c_str());
    FailWith("replace", path, error);
  }
  SyncFolderOf(target);
}

}  // namespace octavo::tools
