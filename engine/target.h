// Choosing the instruction set by name, with errors for users.
#ifndef OCTAVO_ENGINE_TARGET_H_
#define OCTAVO_ENGINE_TARGET_H_

#include <string>
#include <string_view>

namespace octavo {

// What the environment variable OCTAVO_TARGET asks for; empty where it is not set.
std::string_view TargetOfEnvironment();

// Makes all kernels use this target (kernels/targets.h) from now on. Empty: the one that the environment variable OCTAVO_TARGET names, else the
// best. Throws Error that lists those that run here. Not while kernels run.
void SelectTarget(std::string_view name);

}  // namespace octavo

#endif  // OCTAVO_ENGINE_TARGET_H_
