// The one way in which bytes leave the command: whole, also through descriptors that somebody made non-blocking.
#ifndef OCTAVO_TOOLS_WRITING_H_
#define OCTAVO_TOOLS_WRITING_H_

#include <string>
#include <string_view>

namespace octavo::tools {

// Whoever read standard output has gone.
struct ClosedPipe {};

// Writes all of it, waiting as long as it takes. Returns 0, or the errno that says why not.
int WriteFully(int fd, std::string_view bytes);

// The same, but throws ClosedPipe, or Error that says why (a full disk). `name` stands in messages.
void WriteAll(int fd, std::string_view bytes, std::string_view name);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_WRITING_H_
