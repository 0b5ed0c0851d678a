// Versions of octavo and of its numerics.
#ifndef OCTAVO_ENGINE_VERSION_H_
#define OCTAVO_ENGINE_VERSION_H_

#include <string_view>

namespace octavo {

// The release, from CMake's project().
std::string_view Version();

// Counts changes of the text that a given model, seed and settings produce.
constexpr int kNumericsVersion = 2;

}  // namespace octavo

#endif  // OCTAVO_ENGINE_VERSION_H_
