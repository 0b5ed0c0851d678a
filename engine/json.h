// Strict JSON on top of nlohmann-json: bounded depth, no key twice, Error instead of the library's exceptions. Not installed.
#ifndef OCTAVO_ENGINE_JSON_H_
#define OCTAVO_ENGINE_JSON_H_

#include <nlohmann/json.hpp>

#include <string_view>

namespace octavo {

// Throws Error when `text` is not one valid JSON value in UTF-8, nests deeper than `max_depth` or has a key twice in one object.
// `what` names the text in the message ("model.safetensors: header").
nlohmann::json ParseJson(std::string_view text, std::string_view what, int max_depth = 64);

}  // namespace octavo

#endif  // OCTAVO_ENGINE_JSON_H_
