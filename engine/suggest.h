// What somebody may have meant who wrote a name that does not exist. Not installed.
#ifndef OCTAVO_ENGINE_SUGGEST_H_
#define OCTAVO_ENGINE_SUGGEST_H_

#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// "; did you mean NAME?" for the nearest of `names`, where it is near: by insertions, deletions, other characters and neighbours that changed
// places (optimal string alignment), at most one for each three characters. Else "".
std::string DidYouMean(std::string_view written, const std::vector<std::string>& names);

}  // namespace octavo

#endif  // OCTAVO_ENGINE_SUGGEST_H_
