// Choosing the target; see target.h.
#include "engine/target.h"

#include <cstdlib>

#include "engine/fail.h"
#include "engine/utf8.h"
#include "kernels/targets.h"

namespace octavo {

std::string_view TargetOfEnvironment() {
  const char* variable = std::getenv("OCTAVO_TARGET");
  return variable ? variable : "";
}

void SelectTarget(std::string_view name) {
  const bool from_variable = name.empty();
  if (from_variable) name = TargetOfEnvironment();
  if (name.empty()) return UseBestTarget();
  if (UseTarget(name)) return;
  Fail("{}target {} is not compiled in or does not run on this CPU; those that do: {}",
       from_variable ? "OCTAVO_TARGET: " : "", Quote(name), fmt::join(RunnableTargets(), ", "));
}

}  // namespace octavo
