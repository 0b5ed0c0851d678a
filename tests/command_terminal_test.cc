// What a hostile model or name may not do to a terminal: clear it, rename its window, turn the order of characters around. Files and pipes get
// every byte as it is.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/utf8.h"
#include "tests/testing/command_checks.h"
#include "tests/testing/files.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

// ESC, BEL, CR, DEL, CSI as one character, and all that turn the direction.
const std::string kHostile = "\x1B\x07\r\x7F\u009B\u0080\u202E\u2066\u2069\u202A\u200E\u200F\u061C";

// A model that writes a, then the characters above, a tab, b, a line end, a backslash.
class TerminalTest : public ::testing::Test {
 protected:
  TerminalTest() {
    const Model model = ScriptedModel("\n\tab\\" + kHostile, script_);
    const std::vector<std::byte> bytes = model.Serialize();
    model_ = folder_.Write("model.safetensors", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  const TemporaryFolder folder_;
  const std::string script_ = "a" + kHostile + "\tb\n\\";
  std::string model_;
};

// No control but line end and tab, nothing that changes directions.
void ExpectHarmless(const std::string& text) {
  EXPECT_EQ(ReplaceInvalidUtf8(text), text);
  EXPECT_TRUE(EscapeForTerminal(text) == text) << EscapeControls(text);
}

constexpr std::string_view kShown =
    "a\\u001B\\u0007\\u000D\\u007F\\u009B\\u0080\\u202E\\u2066\\u2069\\u202A\\u200E\\u200F\\u061C\tb\n\\";

TEST_F(TerminalTest, TextIsEscapedOnTerminalsOnly) {
  const std::string count = std::to_string(DecodeUtf8(script_).size());
  const Arguments one = {"generate", "--model", model_,          "--max-chars", count,        "--seed",
                         "1",        "--quiet", "--temperature", "0",           "--overflow", "stop"};
  for (const Arguments& arguments : {one, one + Arguments{"--samples", "2"}}) {  // streamed, and not
    SCOPED_TRACE(Show(arguments));
    const bool twice = arguments.size() > one.size();
    const std::string piped = script_ + "\n", shown = std::string(kShown) + "\n";
    EXPECT_EQ(RunWell(arguments).out, twice ? piped + "\n" + piped : piped);
    EXPECT_EQ(RunWell(arguments, {.terminal = true}).out, twice ? shown + "\n" + shown : shown);
  }
}

TEST_F(TerminalTest, RecordsStayReadable) {
  const std::string count = std::to_string(DecodeUtf8(script_).size());
  const Arguments arguments = {"generate", "--model",  model_,           "--max-chars", count,      "--quiet", "--seed",
                               "1",        "--prompt", "\\u001B\\u202E", "--escape",    "--format", "jsonl"};
  const RunResult piped = RunWell(arguments), shown = RunWell(arguments, {.terminal = true});
  ExpectHarmless(shown.out);
  EXPECT_EQ(Records(piped), Records(shown)) << "the same values, otherwise written";
  const Arguments lines = {"generate", "--model", model_, "--max-chars", count,
                           "--quiet",  "--seed",  "1",    "--format",    "lines"};
  const RunResult line = RunWell(lines, {.terminal = true});
  ExpectHarmless(line.out);
  EXPECT_EQ(ReadEscapes(line.out), ReadEscapes(RunWell(lines).out));
}

TEST_F(TerminalTest, OtherCommandsAreHarmlessToo) {
  const std::string text = "a" + kHostile + "b";
  for (const Arguments& arguments :
       std::vector<Arguments>{{"attend", text, "--model", model_},
                              {"attend", text, "--model", model_, "--format", "json"},
                              {"info", "--model", model_},
                              {"info", "--model", model_, "--format", "json"},
                              {"score", folder_.Write("texts", text + "\n"), "--model", model_}}) {
    SCOPED_TRACE(Show(arguments));
    ExpectHarmless(RunWell(arguments, {.terminal = true}).out);
  }
}

// Names of files, vocabulary entries, keys and arguments in messages, which are one line each whatever stands in them.
TEST_F(TerminalTest, MessagesAreHarmless) {
  const std::string name = "m" + kHostile + "\n\t";
  const std::string named = (folder_.path() / name).string();
  std::filesystem::copy_file(model_, named);
  const std::string prompts =
      folder_.Write("prompts" + name + ".jsonl",
                    "{\"prompt\": \"a\", \"" + std::string("\u202E") + "x\": 1}\n{\"prompt\": \"\u2067\"}\n");
  for (const Arguments& arguments :
       std::vector<Arguments>{{"generate", "--model", named + "x"},
                              {"generate", "--model", named, "--prompts", prompts, "--max-chars", "1", "--seed", "1"},
                              {"generate", "--prompts", named + "x"},
                              {"generate", "--prompt", kHostile, "--seed", "1"},
                              {"generate", "--output", named, "--format", "lines"},
                              {"generate", "--unknown", kHostile},
                              {"generate", "--" + kHostile},
                              {"generate", kHostile},
                              {kHostile},
                              {"attend", kHostile},
                              {"attend", "a", "--html", named},
                              {"score", named + "x"},
                              {"generate", "--target", kHostile},
                              {"generate", "--seed", kHostile}}) {
    SCOPED_TRACE(Show(arguments));
    const RunResult result = RunOctavo(arguments);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_NE(result.err, "");
    ExpectHarmless(result.err);
    EXPECT_EQ(result.err.find('\t'), std::string::npos);
    for (const std::string& line : Lines(result.err)) EXPECT_TRUE(line.starts_with("octavo: ")) << line;
  }
}

// Names need not be UTF-8, which JSON has to be; the library's exception was what users saw.
TEST_F(TerminalTest, NamesThatAreNotUtf8AreReplaced) {
  const std::string named = (folder_.path() / "m\xFF.safetensors").string();
  std::filesystem::copy_file(model_, named);
  for (const Arguments& arguments : std::vector<Arguments>{{"info", "--model", named, "--format", "json"},
                                                           {"info", "--model", named},
                                                           {"attend", "a", "--model", named, "--format", "json"},
                                                           {"attend", "a", "--model", named, "--html", "-"}}) {
    SCOPED_TRACE(Show(arguments));
    const RunResult result = RunWell(arguments);
    EXPECT_EQ(ReplaceInvalidUtf8(result.out), result.out);
    EXPECT_NE(result.out.find("m\uFFFD.safetensors"), std::string::npos) << result.out.substr(0, 1000);
  }
}

}  // namespace
}  // namespace octavo::test
