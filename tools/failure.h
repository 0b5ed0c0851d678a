// What to say about an exception that is not octavo's own. Those of libraries are written for programmers and name their internals.
#ifndef OCTAVO_TOOLS_FAILURE_H_
#define OCTAVO_TOOLS_FAILURE_H_

#include <exception>
#include <string>

namespace octavo::tools {

// One line for whoever ran the command: what the system refused, or that octavo has a fault and how to report it. Never error.what(). Its kind
// is named for the report only.
std::string ExplainForeign(const std::exception& error);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_FAILURE_H_
