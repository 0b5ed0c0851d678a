// A folder for runs that are broken off and resumed.
#ifndef OCTAVO_TESTS_TESTING_RESUME_H_
#define OCTAVO_TESTS_TESTING_RESUME_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "tests/testing/command_checks.h"
#include "tests/testing/files.h"

namespace octavo::test {

class ResumeTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }

  // Leaves the first `bytes` bytes of `whole`, as a broken run would.
  void Break(const std::string& whole, size_t bytes) const { WriteFile(out_, whole.substr(0, bytes)); }

  const TemporaryFolder folder_;
  const std::string out_ = Path("out");
};

}  // namespace octavo::test

#endif  // OCTAVO_TESTS_TESTING_RESUME_H_
