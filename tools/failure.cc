// Foreign exceptions in plain words; see failure.h.
#include "tools/failure.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <ios>
#include <memory>
#include <system_error>
#include <typeinfo>

#include "engine/utf8.h"

namespace octavo::tools {
namespace {

std::string KindOf(const std::exception& error) {
  const char* name = typeid(error).name();
  const std::unique_ptr<char, void (*)(void*)> readable(abi::__cxa_demangle(name, nullptr, nullptr, nullptr),
                                                        std::free);
  return readable ? readable.get() : name;
}

}  // namespace

std::string ExplainForeign(const std::exception& error) {
  if (const auto* about_path = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return fmt::format("{}: {}", QuotePath(about_path->path1().string()), about_path->code().message());
  }
  // Streams carry no reason of the system's, only their own.
  const auto* refused = dynamic_cast<const std::system_error*>(&error);
  if (refused && !dynamic_cast<const std::ios_base::failure*>(&error)) {
    return fmt::format("the system refused what octavo asked for: {}", refused->code().message());
  }
  return fmt::format("this should not happen and is a fault of octavo; please report it with the command ({})",
                     KindOf(error));
}

}  // namespace octavo::tools
