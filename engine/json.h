// Strict JSON on top of nlohmann-json: bounded depth and number of values, no key twice, Error instead of the library's
// exceptions, time and memory in proportion to the text. Not installed.
#ifndef OCTAVO_ENGINE_JSON_H_
#define OCTAVO_ENGINE_JSON_H_

#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace octavo {

struct JsonLimits {
  JsonLimits(int most_depth = 64, size_t most_values = size_t{1} << 18) : depth(most_depth), values(most_values) {}
  int depth;
  size_t values;  // of what is in memory at once. An empty list takes 3 bytes of text and 80 of memory.
};

// A value that was read. Goes without taking memory, which the library's destructor does, and ends the process where
// there is none.
class JsonDocument {
 public:
  JsonDocument() = default;
  JsonDocument(JsonDocument&& other) noexcept : value_(std::move(other.value_)) {}
  JsonDocument& operator=(JsonDocument&& other) noexcept;
  ~JsonDocument() { Clear(); }

  void Clear() noexcept;
  nlohmann::json& operator*() { return value_; }
  const nlohmann::json& operator*() const { return value_; }
  const nlohmann::json* operator->() const { return &value_; }

 private:
  nlohmann::json value_;
};

// Throws Error when `text` is not one valid JSON value in UTF-8, exceeds the limits or has a key twice in one object.
// `what` names the text in the message ("model.safetensors: header").
JsonDocument ParseJson(std::string_view text, std::string_view what, JsonLimits limits = {});

// The same for a long object or list, which is never in memory as a whole: hands over its members, as they come, with
// their keys ("" in a list). That no key of the object itself comes twice is left to `take`; what it throws is thrown
// on. `expected` says in messages what kind of object or list it is ("a list of strings").
enum class JsonKind { kObject, kList };
void ParseJsonMembers(std::string_view text, std::string_view what, JsonKind kind, std::string_view expected,
                      JsonLimits limits,
                      const std::function<void(const std::string& key, const nlohmann::json& value)>& take);

}  // namespace octavo

#endif  // OCTAVO_ENGINE_JSON_H_
