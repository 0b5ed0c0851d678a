// Bytes to descriptors; see writing.h.
#include "tools/writing.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/error.h"

namespace octavo::tools {

int WriteFully(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd wait = {fd, POLLOUT, 0};
      poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

void WriteAll(int fd, std::string_view bytes, std::string_view name) {
  const int error = WriteFully(fd, bytes);
  if (error == EPIPE) throw ClosedPipe();
  if (error == EBADF) throw Error(fmt::format("cannot write to {}: it is closed", name));
  if (error != 0) throw Error(fmt::format("cannot write to {}: {}", name, std::strerror(error)));
}

}  // namespace octavo::tools
