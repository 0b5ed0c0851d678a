// Strict JSON; see json.h.
#include "engine/json.h"

#include <set>
#include <string>
#include <vector>

#include "engine/fail.h"
#include "engine/utf8.h"

namespace octavo {

nlohmann::json ParseJson(std::string_view text, std::string_view what, int max_depth) {
  using Json = nlohmann::json;
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    switch (event) {
      case Json::parse_event_t::object_start:
        keys.emplace_back();
        [[fallthrough]];
      case Json::parse_event_t::array_start:
        if (depth >= max_depth) Fail("{} is JSON nested more than {} deep", what, max_depth);
        break;
      case Json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case Json::parse_event_t::key: {
        const std::string& key = value.get_ref<const std::string&>();
        if (!keys.back().insert(key).second) Fail("{} has the key {} twice", what, Quote(key));
        break;
      }
      default:
        break;
    }
    return true;
  };
  // The library takes a zero byte for the end of the text.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    Fail("{} is not valid JSON in UTF-8 (at byte {})", what, zero + 1);
  }
  try {
    return Json::parse(text, check);
  } catch (const Json::parse_error& error) {
    Fail("{} is not valid JSON in UTF-8 (at byte {})", what, error.byte);
  } catch (const Json::exception&) {
    Fail("{} has a number that does not fit", what);
  }
}

}  // namespace octavo
