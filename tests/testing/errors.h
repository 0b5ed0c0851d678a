// Whether something fails as users should see it: by octavo::Error, with one line that names the place.
#ifndef OCTAVO_TESTS_TESTING_ERRORS_H_
#define OCTAVO_TESTS_TESTING_ERRORS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>

#include "engine/error.h"
#include "engine/utf8.h"

namespace octavo::test {

// Success when `work` throws Error with a message that holds all `parts` and is one short line of UTF-8 without control characters.
template <typename Work>
::testing::AssertionResult Fails(const Work& work, std::initializer_list<std::string_view> parts) {
  std::string message;
  try {
    work();
    return ::testing::AssertionFailure() << "nothing was thrown";
  } catch (const Error& error) {
    message = error.what();
  } catch (const std::exception& error) {
    return ::testing::AssertionFailure() << "threw another exception: " << error.what();
  }
  for (const std::string_view part : parts) {
    if (message.find(part) == std::string::npos) {
      return ::testing::AssertionFailure() << "the message does not say '" << part << "': " << message;
    }
  }
  constexpr size_t kLongest = 700;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (message.empty() || message.size() > kLongest || ReplaceInvalidUtf8(message) != message ||
      std::any_of(message.begin(), message.end(), is_control)) {
    return ::testing::AssertionFailure() << "the message is not one short line: " << message;
  }
  return ::testing::AssertionSuccess() << message;
}

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_ERRORS_H_
