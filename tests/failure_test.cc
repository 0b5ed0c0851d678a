// What users read about exceptions that are not octavo's own: one plain line, without the words of libraries.
#include "tools/failure.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace octavo::test {
namespace {

std::string Explained(const std::function<void()>& fails) {
  try {
    fails();
  } catch (const std::exception& error) {
    const std::string line = tools::ExplainForeign(error);
    EXPECT_EQ(line.find(error.what()), std::string::npos) << "in the words of the library: " << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    return line;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

void ExpectReport(const std::function<void()>& fails, std::string_view kind) {
  const std::string line = Explained(fails);
  EXPECT_TRUE(
      line.starts_with("this should not happen and is a fault of octavo; please report it with the command (") &&
      line.find(kind) != std::string::npos)
      << line;
}

TEST(Failure, OfLibrariesIsToBeReported) {
  ExpectReport([] { (void)nlohmann::json("a").get<int>(); }, "type_error");
  ExpectReport([] { (void)nlohmann::json("\xFF").dump(); }, "type_error");
  ExpectReport([] { (void)std::vector<int>().at(1); }, "std::out_of_range");
  ExpectReport(
      [] {
        std::ifstream folder("/");
        (void)std::string(std::istreambuf_iterator<char>(folder), {});
      },
      "failure");
}

TEST(Failure, OfTheSystemIsSaid) {
  EXPECT_EQ(Explained([] { std::filesystem::create_directory("/no such/folder"); }),
            "'/no such/folder': No such file or directory");
  EXPECT_EQ(Explained([] {
              throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "thread");
            }),
            "the system refused what octavo asked for: Resource temporarily unavailable");
}

}  // namespace
}  // namespace octavo::test
