// The command line that this process was started with, for messages that say what to run next.
#ifndef OCTAVO_TOOLS_COMMAND_LINE_H_
#define OCTAVO_TOOLS_COMMAND_LINE_H_

#include <string>
#include <string_view>
#include <vector>

namespace octavo::tools {

// Call once, before anything asks for it. `program` is argv[0].
void RememberCommandLine(std::string program, std::vector<std::string> arguments);

// The remembered command without `removed` flags (switches, which take no value) and with `added` behind it, as a shell reads it.
std::string CommandWith(std::string_view added, std::string_view removed);

// `argument` as one word of a shell: as it is, in quotes, or, where it holds controls, in the quotes of Bash, $'…'.
std::string ShellWord(std::string_view argument);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_COMMAND_LINE_H_
