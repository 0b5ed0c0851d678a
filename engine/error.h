// The one exception type of the engine: what went wrong, where, what was expected, what was found, what to do.
#ifndef OCTAVO_ENGINE_ERROR_H_
#define OCTAVO_ENGINE_ERROR_H_

#include <stdexcept>

namespace octavo {

// Thrown for bad files, options and texts. what() is one line, without a line end, fit to be shown to a user as it is.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_ERROR_H_
