// Whatever ends a run early: INT and TERM, and an output that fails. One for the process, since signals are.
//
//   first signal    no record is begun; those in hand have kGraceSeconds to be finished, then they are dropped
//   second          they are dropped at once; the process has a second to write what is whole and finished
//   third           ends the process where it stands
#ifndef OCTAVO_TOOLS_STOP_H_
#define OCTAVO_TOOLS_STOP_H_

#include <atomic>
#include <string_view>

namespace octavo::tools {

constexpr unsigned kGraceSeconds = 2;

// From here on INT and TERM end the run as above. A signal that was ignored stays so. The first one says on standard error what becomes of
// the records, called `noun` ("completions"), in place of the progress line where one is shown; an empty noun: says nothing.
void StopOnSignals(std::string_view noun, bool shows_progress);

// Asks the run to begin nothing more. Safe on any thread.
void RequestStop();

// Asks it to drop what is in hand, too.
void RequestAbandon();

// True once a stop was asked for; once what is in hand is to be dropped.
const std::atomic<bool>& StopFlag();
const std::atomic<bool>& AbandonFlag();

// Waits until `fd` can be read (or fails); false when a stop was asked for, which is not missed while it waits.
bool WaitToRead(int fd);

// The signal that stopped the run; 0 for none.
int StopSignal();

// The exit code of a run that is over: 128 + the signal that stopped it, else `otherwise`.
int ExitCode(int otherwise);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_STOP_H_
