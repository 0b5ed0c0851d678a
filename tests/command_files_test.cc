// Files that the command must not touch: an output that is an input under whatever name, and what somebody else has where FILE or FILE.run would be.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>

#include "tests/testing/command_checks.h"
#include "tests/testing/files.h"

namespace octavo::test {
namespace {

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    std::filesystem::copy(Golden("m8.safetensors"), model_);
    std::filesystem::copy(Golden("modd"), folder_model_);
    std::filesystem::create_symlink("p.jsonl", Path("link"));
    std::filesystem::create_symlink("link", Path("link of link"));
    std::filesystem::create_hard_link(prompts_, Path("hard"));
  }

  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }

  // One message; nothing in the folder changes.
  void ExpectRefused(const Arguments& arguments, std::string_view part, int exit_code = 2,
                     const RunOptions& options = {}) const {
    SCOPED_TRACE(Show(arguments));
    const auto before = Contents();
    ExpectOneMessage(RunOctavo(arguments, options), exit_code, part);
    EXPECT_EQ(Contents(), before);
  }

  std::set<std::pair<std::string, std::string>> Contents() const {
    std::set<std::pair<std::string, std::string>> contents;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      const bool link = entry.is_symlink();
      if (!link && !entry.is_regular_file()) continue;
      contents.insert({entry.path().string(),
                       link ? std::filesystem::read_symlink(entry.path()).string() : ReadFile(entry.path().string())});
    }
    return contents;
  }

  const TemporaryFolder folder_;
  const std::string prompts_ = folder_.Write("p.jsonl", "{\"prompt\": \"ab\"}\n{\"prompt\": \"\"}\n");
  const std::string model_ = Path("m.safetensors"), folder_model_ = Path("model"), out_ = Path("out");
  const Arguments generate_ = {"generate", "--model", model_, "--seed", "1", "--max-chars", "5", "--quiet"};
  const Arguments run_ = generate_ + Arguments{"--format", "lines", "--prompts", prompts_};
};

TEST_F(FilesTest, PromptsAreNoOutput) {
  for (const char* name : {"p.jsonl", "link", "link of link", "hard", "model/../p.jsonl"}) {
    for (const char* mode : {"--force", "--resume", "--quiet"}) {
      ExpectRefused(run_ + Arguments{mode, "--output", Path(name)},
                    "--output: '" + Path(name) + "' is the file '" + prompts_ + "' that --prompts reads; expected ");
    }
  }
  // Read by another name, or from standard input.
  ExpectRefused(generate_ + Arguments{"--format", "lines", "--force", "--prompts", Path("link"), "--output", prompts_},
                "that --prompts reads");
  ExpectRefused(generate_ + Arguments{"--format", "lines", "--force", "--prompts", "-", "--output", prompts_},
                "is the file standard input that --prompts reads", 2, {.input_path = prompts_});
}

TEST_F(FilesTest, PromptsAreNoRecord) {
  for (const char* name : {"x.run", "y.run"}) {
    std::filesystem::create_symlink(prompts_, Path(name));
    const std::string out = Path(name).substr(0, Path(name).size() - 4);
    ExpectRefused(run_ + Arguments{"--force", "--output", out}, "' that --prompts reads");
    ExpectRefused(run_ + Arguments{"--output", out}, "' that --prompts reads");
  }
}

TEST_F(FilesTest, ModelIsNoOutput) {
  ExpectRefused(run_ + Arguments{"--force", "--output", model_}, "' that --model reads");
  for (const char* name : {"model.safetensors", "config.json", "vocab.json"}) {
    const std::string file = folder_model_ + "/" + name;
    ASSERT_TRUE(std::filesystem::exists(file));
    ExpectRefused(run_ + Arguments{"--force", "--model", folder_model_, "--output", file}, "' that --model reads");
    ExpectRefused({"attend", "ab", "--model", folder_model_, "--force", "--html", file}, "' that --model reads");
  }
  std::filesystem::create_symlink("m.safetensors", Path("page.html"));
  for (const char* name : {"m.safetensors", "page.html"}) {
    ExpectRefused({"attend", "ab", "--model", model_, "--force", "--html", Path(name)},
                  "--html: '" + Path(name) + "' is the file '" + model_ + "' that --model reads");
  }
  // A file of another name in the model's folder is none of its own.
  RunWell(run_ + Arguments{"--model", folder_model_, "--output", folder_model_ + "/out.jsonl"});
}

TEST_F(FilesTest, StandardStreamsAreNoInput) {
  const auto expect_appended_nothing = [&](const Arguments& arguments, const std::string& file) {
    for (const bool append : {true, false}) {
      const std::string bytes = ReadFile(file);
      const RunResult result = RunOctavo(arguments, {.output_path = file, .append = append});
      ExpectOneMessage(result, 2, "standard output goes to the file '" + file + "' that ");
      EXPECT_EQ(ReadFile(file), append ? bytes : "") << "emptied by the shell, but not written to";
      WriteFile(file, bytes);
    }
  };
  expect_appended_nothing(run_, prompts_);
  expect_appended_nothing({"score", prompts_, "--model", model_}, prompts_);
  for (const Arguments& command : {Arguments{"generate"}, {"score", "-"}, {"attend", "ab"}, {"info"}, {"check"}}) {
    expect_appended_nothing(command + Arguments{"--model", model_}, model_);
  }
  // Messages, which would be read as prompts, or stand among the records.
  for (const std::string& file : {prompts_, out_}) {
    WriteFile(out_, "record\n");
    const std::string bytes = ReadFile(file);
    const RunResult result =
        RunOctavo(run_ + Arguments{"--output", out_, "--resume"}, {.messages_path = file, .append = true});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(ReadFile(file).substr(0, bytes.size()), bytes);
    EXPECT_EQ(Lines(ReadFile(file).substr(bytes.size())).size(), 1u) << ReadFile(file);
    WriteFile(file, bytes);
  }
}

TEST_F(FilesTest, WhatIsNoFileMayBeBoth) {
  RunWell(generate_ + Arguments{"--format", "lines", "--prompts", "/dev/null", "--output", "/dev/null"});
  EXPECT_EQ(RunWell(generate_ + Arguments{"--prompts", "/dev/null"}, {.output_path = "/dev/null"}).out, "");
  RunWell({"score", "/dev/null", "--model", model_}, {.output_path = "/dev/null", .messages_path = "/dev/null"});
  // One file for results and messages, which is no input.
  RunWell({"info", "--model", model_}, {.output_path = out_, .messages_path = out_, .append = true});
}

// ---- what somebody else has ----

TEST_F(FilesTest, NotesBesideTheOutputAreKept) {
  for (const std::string notes : {"my notes\n", "", "[1, 2]", "{\"seed\": \"high\"}"}) {
    WriteFile(out_ + ".run", notes);
    ExpectRefused(run_ + Arguments{"--output", out_}, "out.run' exists and is not the record of a run; use --force", 1);
    ExpectRefused(run_ + Arguments{"--output", out_, "--resume"}, "out.run' is damaged; expected the record of a run",
                  1);
    EXPECT_FALSE(std::filesystem::exists(out_));
  }
  RunWell(run_ + Arguments{"--output", out_, "--force"});
  EXPECT_EQ(Json::parse(ReadFile(out_ + ".run")).at("seed"), 1);
  // The record of a run whose records are gone is nobody's.
  std::filesystem::remove(out_);
  RunWell(run_ + Arguments{"--output", out_});
}

TEST_F(FilesTest, WhatIsNoFileIsNoRecord) {
  std::filesystem::create_directory(out_ + ".run");
  WriteFile(out_, "old\n");
  ExpectRefused(run_ + Arguments{"--output", out_, "--force"}, "out.run' is a directory; expected a file", 1);
  std::filesystem::remove(out_ + ".run");
  ASSERT_EQ(mkfifo((out_ + ".run").c_str(), 0666), 0);
  for (const char* mode : {"--force", "--resume"}) {
    ExpectRefused(run_ + Arguments{"--output", out_, mode}, "out.run' is not a regular file", 1);
  }
}

// Names that a run may want for a moment lead nowhere else.
TEST_F(FilesTest, LinksBesideTheOutputAreNotFollowed) {
  const std::string precious = folder_.Write("precious", "precious");
  for (const char* name : {"out.run.new", "out.new", "page.html.new"})
    std::filesystem::create_symlink(precious, Path(name));
  RunWell(run_ + Arguments{"--output", out_});
  RunWell({"attend", "ab", "--model", model_, "--html", Path("page.html")});
  RunWell({"attend", "ab", "--model", model_, "--html", Path("page.html"), "--force"});
  EXPECT_EQ(ReadFile(precious), "precious");
  EXPECT_TRUE(std::filesystem::is_symlink(Path("out.run.new")));
}

// A link as FILE or FILE.run stays, and what it leads to is written.
TEST_F(FilesTest, LinksAreWrittenThrough) {
  std::filesystem::create_directory(Path("elsewhere"));
  std::filesystem::create_symlink("elsewhere/records", out_);
  std::filesystem::create_symlink("elsewhere/record", out_ + ".run");
  const std::string expected = RunWell(run_).out;
  for (const char* mode : {"--quiet", "--force", "--resume"}) {
    RunWell(run_ + Arguments{"--output", out_, mode});
    EXPECT_TRUE(std::filesystem::is_symlink(out_) && std::filesystem::is_symlink(out_ + ".run"));
    EXPECT_EQ(ReadFile(Path("elsewhere/records")), expected);
    EXPECT_EQ(Json::parse(ReadFile(Path("elsewhere/record"))).at("seed"), 1);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(Path("elsewhere")), {}), 2);
}

// --force takes away nothing before the run can begin.
TEST_F(FilesTest, ForcedRunsThatCannotBeginLeaveTheFile) {
  RunWell(run_ + Arguments{"--output", out_});
  const Arguments forced = run_ + Arguments{"--output", out_, "--force"};
  WriteFile(Path("not a model"), "text");
  ExpectRefused(forced + Arguments{"--model", Path("not a model")}, "not a model", 1);
  ExpectRefused(forced + Arguments{"--model", Path("missing")}, "no such file", 1);
  ExpectRefused(generate_ + Arguments{"--format", "lines", "--prompts", Path("missing"), "--output", out_, "--force"},
                "cannot open", 1);
  ExpectRefused(forced + Arguments{"--temperature", "-1"}, "temperature", 2);
  ExpectRefused(forced + Arguments{"--unknown", "replace=XX"}, "--unknown", 2);
  ExpectRefused(forced + Arguments{"--target", "Z80"}, "--target", 2);
}

TEST_F(FilesTest, ExistingPageIsRefusedBeforeTheModelIsRead) {
  const std::string page = folder_.Write("page.html", "old");
  ExpectRefused({"attend", "ab", "--model", Path("missing"), "--html", page}, "page.html' exists; use --force", 1);
  ExpectRefused({"attend", "no such text %%", "--model", model_, "--html", page, "--force"}, "TEXT", 2);
}

}  // namespace
}  // namespace octavo::test
