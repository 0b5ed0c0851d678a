// Standard input, output and error that were closed when the program began: opened on something harmless before anything else is, for the next
// file that is opened would get the free number, and messages or records would be written into it.
#ifndef OCTAVO_TOOLS_DESCRIPTORS_H_
#define OCTAVO_TOOLS_DESCRIPTORS_H_

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace octavo::tools {

// The first call of main(). An absent input is empty and absent messages vanish, both on /dev/null. On an absent output every write fails, since
// nothing may be lost in silence: it is a folder, which cannot be opened for writing as /dev/stdout either.
inline void OpenAbsentDescriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. Where there is no /dev, reading fails and messages vanish all the same.
    const int access = number == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    if (number == STDOUT_FILENO || open("/dev/null", access) < 0) open("/", O_RDONLY);
  }
}

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_DESCRIPTORS_H_
