// Puts the page together; see page.h.
#include "tools/attend/page.h"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "tools/io.h"

// The files of this folder, embedded by files.S: from `_begin` to `_end`.
extern "C" {
#define OCTAVO_PAGE_FILE(name) extern const char octavo_page_##name##_begin[], octavo_page_##name##_end[]
OCTAVO_PAGE_FILE(html);
OCTAVO_PAGE_FILE(style);
OCTAVO_PAGE_FILE(text);
OCTAVO_PAGE_FILE(soft_lookup);
OCTAVO_PAGE_FILE(triangle);
OCTAVO_PAGE_FILE(heads);
OCTAVO_PAGE_FILE(main);
#undef OCTAVO_PAGE_FILE
}

namespace octavo::tools {
namespace {

std::string_view Between(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }

// JSON inside of a script element, which ends at the first `</script`: no text of the user can hold a `<`.
std::string EmbeddedJson(const nlohmann::ordered_json& value) {
  std::string embedded;
  for (const char c : JsonLine(value)) {
    if (c == '<') {
      embedded += "\\u003c";
    } else {
      embedded += c;
    }
  }
  return embedded;
}

}  // namespace

std::string AttendPage(const nlohmann::ordered_json& attention, uint64_t layer, uint64_t head) {
#define OCTAVO_PAGE_FILE(name) Between(octavo_page_##name##_begin, octavo_page_##name##_end)
  const auto content_of = [&](std::string_view name) -> std::string {
    if (name == "style") return std::string(OCTAVO_PAGE_FILE(style));
    if (name == "data") return EmbeddedJson(attention);
    if (name == "layer") return std::to_string(layer);
    if (name == "head") return std::to_string(head);
    if (name != "script")
      throw std::logic_error("page.html asks for something that is not there: " + std::string(name));
    std::string script;
    for (const std::string_view file : {OCTAVO_PAGE_FILE(text), OCTAVO_PAGE_FILE(soft_lookup),
                                        OCTAVO_PAGE_FILE(triangle), OCTAVO_PAGE_FILE(heads), OCTAVO_PAGE_FILE(main)}) {
      script += file;
    }
    return script;
  };
  // Once from front to end: what is filled in is not looked at again.
  std::string_view rest = OCTAVO_PAGE_FILE(html);
#undef OCTAVO_PAGE_FILE
  std::string page;
  for (size_t open; (open = rest.find("{{")) != std::string_view::npos;) {
    const size_t close = rest.find("}}", open);
    page += rest.substr(0, open);
    page += content_of(rest.substr(open + 2, close - open - 2));
    rest.remove_prefix(close + 2);
  }
  return page += rest;
}

}  // namespace octavo::tools
