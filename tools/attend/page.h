// The page that shows what heads read: one HTML file that needs nothing else, put together from the files of this folder.
#ifndef OCTAVO_TOOLS_ATTEND_PAGE_H_
#define OCTAVO_TOOLS_ATTEND_PAGE_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace octavo::tools {

// `attention` as `octavo attend --format json` prints it for all heads; the page opens with the given layer and head, from 1.
std::string AttendPage(const nlohmann::ordered_json& attention, uint64_t layer, uint64_t head);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_ATTEND_PAGE_H_
