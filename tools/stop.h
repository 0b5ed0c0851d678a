// Whatever ends a run early: INT and TERM, and an output that fails. One for the process, since signals are.
#ifndef OCTAVO_TOOLS_STOP_H_
#define OCTAVO_TOOLS_STOP_H_

#include <atomic>

namespace octavo::tools {

// From here on INT and TERM ask the run to stop, once: the second ends the process at once. A signal that was ignored stays so.
void StopOnSignals();

// Asks the run to stop. `signal`: which one asked, 0 for none. Safe in signal handlers and on any thread.
void RequestStop(int signal = 0);

// True once a stop was asked for.
const std::atomic<bool>& StopFlag();

// Waits until `fd` can be read (or fails); false when a stop was asked for, which is not missed while it waits.
bool WaitToRead(int fd);

// The exit code of a run that is over: 128 + the signal that stopped it, else `otherwise`.
int ExitCode(int otherwise);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_STOP_H_
