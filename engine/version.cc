// The release; see version.h.
#include "engine/version.h"

namespace octavo {

std::string_view Version() { return OCTAVO_VERSION; }

}  // namespace octavo
