// What the command does when memory runs out: it says so in one line and ends with exit code 1, whoever noticed.
#ifndef OCTAVO_TOOLS_MEMORY_H_
#define OCTAVO_TOOLS_MEMORY_H_

namespace octavo::tools {

// From here on a small reserve is given back when memory first runs out, so that what is under way can be ended in
// order; and where the shortage ends the process (a destructor of a library that needs memory), it ends with that line
// instead of an abort.
void PrepareForLowMemory();

// Writes the line; takes no memory.
void SayOutOfMemory() noexcept;

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_MEMORY_H_
