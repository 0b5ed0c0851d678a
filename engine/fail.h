// Throws Error with a formatted message. For the engine's own files; not installed.
#ifndef OCTAVO_ENGINE_FAIL_H_
#define OCTAVO_ENGINE_FAIL_H_

#include <fmt/format.h>

#include <utility>

#include "engine/error.h"

namespace octavo {

template <typename... Args>
[[noreturn]] void Fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace octavo

#endif  // OCTAVO_ENGINE_FAIL_H_
