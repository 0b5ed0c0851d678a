// What all of the engine's own files need: flags that they must not be compiled with, and Error with a formatted
// message. Not installed.
#ifndef OCTAVO_ENGINE_FAIL_H_
#define OCTAVO_ENGINE_FAIL_H_

#include <fmt/format.h>

#include <utility>

#include "engine/error.h"
#include "kernels/strict_math.h"

namespace octavo {

template <typename... Args>
[[noreturn]] void Fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace octavo

#endif  // OCTAVO_ENGINE_FAIL_H_
