// octavo attend: the table, the triangle and the JSON against PyTorch's attention weights, windows, refusals, and the page as a file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/utf8.h"
#include "tests/testing/command_checks.h"
#include "tests/testing/files.h"
#include "tests/testing/golden.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

const std::string kBag = "The bag didn't fit in the car because it was too small";

Json Attended(const Arguments& arguments) {
  return Json::parse(RunWell(Arguments{"attend", "--format", "json"} + arguments).out);
}

std::vector<std::string> KeysOf(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

// The data that a page holds.
Json DataOf(const std::string& page) {
  const std::string opening = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(opening) + opening.size(), end = page.find("</script>", begin);
  return Json::parse(page.substr(begin, end - begin), nullptr, false);
}

TEST(AttendJson, HasEveryWeightAsPyTorchHasIt) {
  for (const nlohmann::json& entry : ReadGoldenManifest()) {
    SCOPED_TRACE(entry.at("name"));
    const std::string model = entry["model"], text = entry["text"];
    const GoldenValues golden = ReadGolden(entry);
    const size_t length = golden.tokens.size();
    const Json found = Attended({text, "--model", model == "tiny" ? model : Golden(model)});
    EXPECT_EQ(KeysOf(found),
              (std::vector<std::string>{"model", "text", "window", "chars", "layers", "heads_per_layer", "heads"}));
    EXPECT_EQ(found.at("text"), text);
    EXPECT_EQ(found.at("window"), 0);
    EXPECT_EQ(found.at("chars"), length);
    const size_t layers = entry["layers"], heads = entry["heads"];
    ASSERT_EQ(found.at("heads").size(), layers * heads);
    for (size_t i = 0; i < layers * heads; ++i) {
      const Json& head = found.at("heads")[i];
      EXPECT_EQ(head.at("layer"), i / heads + 1);
      EXPECT_EQ(head.at("head"), i % heads + 1);
      ASSERT_EQ(head.at("weights").size(), length);
      for (size_t t = 0; t < length; ++t)
        ASSERT_EQ(head.at("weights")[t].size(), t + 1) << "nothing above the diagonal";
      for (size_t r = 0; r < golden.positions.size(); ++r) {
        const auto row = head.at("weights")[golden.positions[r]].get<std::vector<double>>();
        for (size_t s = 0; s < row.size(); ++s) {
          EXPECT_TRUE(std::abs(row[s] - golden.attention[(i * golden.positions.size() + r) * length + s]) <= 1e-5);
        }
      }
    }
  }
}

TEST(AttendJson, HasTheStatistics) {
  const Json attended = Attended({kBag});
  for (const Json& head : attended.at("heads")) {
    EXPECT_EQ(KeysOf(head),
              (std::vector<std::string>{"layer", "head", "previous_largest", "previous_positions", "space_largest",
                                        "space_positions", "recent_share", "mean_distance", "weights"}));
    EXPECT_EQ(head.at("previous_positions"), 53);
    EXPECT_EQ(head.at("space_positions"), 29);
    // The definitions, over the weights printed.
    double recent = 0, distance = 0;
    int previous = 0;
    for (size_t t = 1; t < kBag.size(); ++t) {
      // What is printed tells floats apart, so floats are read.
      const auto floats = head.at("weights")[t].get<std::vector<float>>();
      const std::vector<double> row(floats.begin(), floats.end());
      previous += std::all_of(row.begin(), row.end(), [&](double x) { return x <= row[t - 1]; }) && row[t] < row[t - 1];
      for (size_t s = 0; s <= t; ++s) {
        recent += s + 2 >= t ? row[s] / 53 : 0;
        distance += row[s] * static_cast<double>(t - s) / 53;
      }
    }
    EXPECT_EQ(head.at("previous_largest"), previous);
    EXPECT_TRUE(std::abs(head.at("recent_share").get<double>() - recent) <= 1e-9);
    EXPECT_TRUE(std::abs(head.at("mean_distance").get<double>() - distance) <= 1e-9);
  }
}

TEST(AttendJson, OfOneCharacterHasNoMeans) {
  const Json head = Attended({"a"}).at("heads")[0];
  EXPECT_EQ(head.at("previous_positions"), 0);
  EXPECT_EQ(head.at("recent_share"), nullptr);
  EXPECT_EQ(head.at("mean_distance"), nullptr);
  EXPECT_EQ(head.at("weights"), Json::parse("[[1.0]]"));
}

TEST(AttendJson, LayerAndHeadCountFromOneAndLeaveOthersOut) {
  const Json all = Attended({kBag});
  const auto only = [&](const Arguments& flags) { return Attended(Arguments{kBag} + flags).at("heads"); };
  EXPECT_EQ(only({"--layer", "1", "--head", "2"}), Json::array({all.at("heads")[1]}));
  EXPECT_EQ(only({"--layer", "2"}).size(), 4u);
  EXPECT_EQ(only({"--head", "4"}), Json::array({all.at("heads")[3], all.at("heads")[7]}));
}

TEST(AttendTable, AgreesWithTheJson) {
  const Json json = Attended({kBag});
  const RunResult result = RunWell({"attend", kBag});
  EXPECT_EQ(result.err, "");
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_GT(lines.size(), 10u);
  for (size_t i = 0; i < 8; ++i) {
    const Json& head = json.at("heads")[i];
    const std::string expected = fmt::format("{:>5}  {:>4}   {:<9}  {:<12}  {:<18}  {:.1f}", i / 4 + 1, i % 4 + 1,
                                             fmt::format("{} of 53", head.at("previous_largest").get<int>()),
                                             fmt::format("{} of 29", head.at("space_largest").get<int>()),
                                             fmt::format("{:.1f}%", 100 * head.at("recent_share").get<double>()),
                                             head.at("mean_distance").get<double>());
    EXPECT_EQ(lines[2 + i], expected);
  }
  EXPECT_EQ(lines[11], "layer 1, head 1: each row reads the characters above it");
}

std::string WriteModel(const TemporaryFolder& folder, const Model& model) {
  const std::vector<std::byte> bytes = model.Serialize();
  return folder.Write("model.safetensors", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Columns that a terminal gives each line, for texts of characters that take one.
size_t WidestLine(const std::string& text) {
  size_t widest = 0;
  for (const std::string& line : Lines(text)) widest = std::max(widest, DecodeUtf8(line).size());
  return widest;
}

// The lines from the text above the triangle on.
std::vector<std::u32string> TriangleOf(const Arguments& arguments) {
  std::vector<std::u32string> lines;
  bool begun = false;
  for (const std::string& line : Lines(RunWell(Arguments{"attend"} + arguments).out)) {
    if (begun) lines.push_back(DecodeUtf8(line));
    begun |= line.find("or more") != std::string::npos;
  }
  return lines;
}

TEST(AttendTriangle, IsDarkerForMoreAndEmptyAboveTheDiagonal) {
  const Json head = Attended({kBag, "--layer", "2", "--head", "2"}).at("heads")[0];
  const std::vector<std::u32string> lines = TriangleOf({kBag, "--layer", "2", "--head", "2"});
  ASSERT_EQ(lines.size(), 1 + kBag.size());
  EXPECT_EQ(lines[0], U"   " + DecodeUtf8(kBag));
  for (size_t t = 0; t < kBag.size(); ++t) {
    const std::u32string& line = lines[1 + t];
    EXPECT_EQ(line[0], kBag[t] == ' ' ? U'␣' : static_cast<char32_t>(kBag[t]));
    ASSERT_LE(line.size(), 3 + t + 1);
    for (size_t s = 0; s <= t; ++s) {
      const double weight = head.at("weights")[t][s];
      const char32_t mark = weight >= 0.75   ? U'█'
                            : weight >= 0.5  ? U'▓'
                            : weight >= 0.25 ? U'▒'
                            : weight >= 0.1  ? U'░'
                            : weight >= 0.02 ? U'·'
                                             : U' ';
      EXPECT_EQ(3 + s < line.size() ? line[3 + s] : U' ', mark) << t << ' ' << s;
    }
  }
}

TEST(AttendTriangle, FitsEightyColumnsOrSaysWhatItLeavesOut) {
  const std::string text = "What's in a name? That which we call a rose, by any other name w";  // 64 characters
  const std::string whole = RunWell({"attend", text}).out;
  EXPECT_LE(WidestLine(whole), 80u);
  EXPECT_EQ(whole.find("left out"), std::string::npos);
  EXPECT_EQ(TriangleOf({text}).size(), 65u);

  std::string longer;
  for (int i = 0; i < 100; ++i) longer += "ab a\n"[i * i % 5];
  const TemporaryFolder folder;
  const std::string model = WriteModel(folder, RandomModel({Characters("\n ab"), 100, 1, 1, 4}));
  const std::string cut = RunWell({"attend", longer, "--model", model}).out;
  EXPECT_LE(WidestLine(cut), 80u);
  // Labels of two columns, "\n", and two between leave room for 76.
  EXPECT_NE(cut.find("left out: characters 1 to 24 of 100"), std::string::npos) << cut;
  const std::string end = cut.substr(cut.rfind('\n', cut.size() - 2) + 1);
  EXPECT_EQ(DecodeUtf8(end)[0], DecodeUtf8(longer).back());
}

TEST(AttendTriangle, ShowsCharactersThatTerminalsCannot) {
  const std::string text = "One \"café\" for €\tX\\Y\u2028😀 and\x01\nagain";
  const std::vector<std::u32string> lines = TriangleOf({text, "--model", Golden("modd")});
  ASSERT_EQ(lines.size(), 34u);
  EXPECT_EQ(lines[0], U"        One \"café\" for €␉X\\Y□□ and␁␊again");
  const auto label = [&](size_t t) { return lines[1 + t].substr(0, lines[1 + t].find(U' ')); };
  EXPECT_EQ(label(3), U"␣");
  EXPECT_EQ(label(8), U"é");
  EXPECT_EQ(label(16), U"\\t");
  EXPECT_EQ(label(18), U"\\");
  EXPECT_EQ(label(20), U"\\u2028");
  EXPECT_EQ(label(21), U"😀");
  EXPECT_EQ(label(26), U"\\u0001");
  EXPECT_EQ(label(27), U"\\n");
  // The emoji takes two columns, and its row begins where the others do.
  EXPECT_EQ(lines[1 + 21].find_first_not_of(U' ', 1), lines[1 + 21].find_first_of(U"·░▒▓█"));
}

TEST(AttendTriangle, HasNoColoursAnywhere) {
  for (const bool terminal : {false, true}) {
    for (const std::string& variable : {std::string("NO_COLOR=1"), std::string("CLICOLOR_FORCE=1")}) {
      const RunResult result = RunWell({"attend", kBag}, {.terminal = terminal, .environment = {variable}});
      EXPECT_EQ(result.out.find('\x1b'), std::string::npos);
    }
  }
}

TEST(AttendWindow, ReadsAContextFromItsCharacterOn) {
  const std::string model = Golden("m8.safetensors"), text = "a cab\nba cc abacab";
  const Json window = Attended({text, "--model", model, "--window", "3"});
  EXPECT_EQ(window.at("text"), text.substr(3, 8));
  EXPECT_EQ(window.at("window"), 3);
  EXPECT_EQ(window.at("heads"), Attended({text.substr(3, 8), "--model", model}).at("heads"));
  EXPECT_EQ(Attended({text, "--model", model, "--window", "14"}).at("text"), "acab") << "what is left";
  EXPECT_EQ(Attended({kBag, "--window", "0"}), Attended({kBag}));
  ExpectOneMessage(RunOctavo({"attend", text, "--model", model}), 2,
                   "TEXT has 18 characters, more than the model's context of 8; with --window N");
  ExpectOneMessage(RunOctavo({"attend", text, "--model", model, "--window", "18"}), 2,
                   "--window: 18 is behind TEXT, which has 18 characters; expected 0 to 17");
}

TEST(AttendRefuses, WhatItCannotShow) {
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{}, "TEXT is required (see octavo attend --help)"},
      {{""}, "TEXT is empty; expected at least one character"},
      {{"a", "b"}, "unexpected argument 'b'"},
      {{"price: 5€"}, "TEXT: character 8 is U+0035 '5', which the model's vocabulary lacks"},
      {{"a\xFF"}, "TEXT: byte 1 (0xFF) is not UTF-8"},
      {{"a", "--layer", "0"}, "--layer: '0' is not a whole number of at least 1"},
      {{"a", "--layer", "3"}, "--layer: 3 is too large; the model has 2 layers"},
      {{"a", "--head", "5"}, "--head: 5 is too large; the model has 4 heads"},
      {{"a", "--window", "-1"}, "--window: '-1' is not a whole number"},
      {{"a", "--format", "html"}, "--format: 'html' is not table or json"},
      {{"a", "--force"}, "--force: expected it with --html FILE"},
  };
  for (const auto& [arguments, part] : cases) {
    SCOPED_TRACE(Show(arguments));
    ExpectOneMessage(RunOctavo(Arguments{"attend"} + arguments), 2, part);
  }
}

TEST(AttendPage, IsWrittenOnceUnlessForced) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "page.html").string();
  const RunResult first = RunWell({"attend", kBag, "--html", path});
  EXPECT_EQ(first.out, "");
  EXPECT_TRUE(first.err.starts_with("octavo: wrote '" + path + "' (")) << first.err;
  const std::string page = ReadFile(path);
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  const Arguments other = {"attend", "To be", "--html", path, "--quiet"};
  ExpectOneMessage(RunOctavo(other), 1, "'" + path + "' exists; use --force to overwrite it, or another name");
  EXPECT_EQ(ReadFile(path), page);
  EXPECT_EQ(RunWell(other + Arguments{"--force"}).err, "");
  EXPECT_EQ(DataOf(ReadFile(path)).at("text"), "To be");
  EXPECT_EQ(RunWell({"attend", kBag, "--html", "/dev/stdout", "--quiet"}).out, page) << "a device is no file to lose";
}

TEST(AttendPage, HoldsTheJson) {
  const std::string page = RunWell({"attend", kBag, "--html", "/dev/stdout", "--quiet"}).out;
  EXPECT_EQ(DataOf(page), Attended({kBag}));
  EXPECT_EQ(page.find("{{"), std::string::npos) << "something was not filled in";
  for (const char* outside : {"http://", "https://", "src=", "href=", "@import", "url("}) {
    size_t at = page.find(outside);
    // The name of SVG's namespace is no address to fetch.
    while (at != std::string::npos && page.substr(at).starts_with("http://www.w3.org/2000/svg'"))
      at = page.find(outside, at + 1);
    EXPECT_EQ(at, std::string::npos) << outside;
  }
}

TEST(AttendPage, TextsCannotLeaveTheirPlace) {
  const TemporaryFolder folder;
  const std::string vocabulary = "<>/\"'&(){}\\\n\x01 !-abcdeghijklnoprstuvwxy\u2028😀";
  const std::string hostile = "</script><script>alert('\"&{{data}}\\\n\x01\u2028😀<!--";
  const std::string path = WriteModel(folder, RandomModel({Characters(vocabulary), 64, 1, 1, 4}));
  const std::string page = RunWell({"attend", hostile, "--model", path, "--html", "/dev/stdout", "--quiet"}).out;
  EXPECT_EQ(DataOf(page).at("text"), hostile);
  const std::string plain = RunWell({"attend", "a", "--html", "/dev/stdout", "--quiet"}).out;
  const auto count = [](const std::string& text, std::string_view part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count(page, "<script"), count(plain, "<script"));
  EXPECT_EQ(count(page, "<!--"), count(plain, "<!--"));
}

TEST(AttendPage, SaysWhyItCannotBeWritten) {
  const TemporaryFolder folder;
  const std::string nowhere = (folder.path() / "no" / "page.html").string();
  ExpectOneMessage(RunOctavo({"attend", "a", "--html", nowhere}), 1, "cannot open '" + nowhere + "': No such file");
  ExpectOneMessage(RunOctavo({"attend", "a", "--html", folder.path().string()}), 1, "Is a directory");
  ExpectOneMessage(RunOctavo({"attend", "a", "--html", "/dev/full"}), 1, "cannot write to '/dev/full': No space left");
}

// tools/attend/example/ is what the command beside it prints.
TEST(AttendExample, IsWhatItsCommandPrints) {
  const std::string folder = OCTAVO_EXAMPLE;
  const std::string page = RunWell({"attend", kBag, "--html", "/dev/stdout", "--quiet"}).out;
  EXPECT_TRUE(ReadFile(folder + "/small.html") == page) << folder << "/README.md says how to refresh it";
}

}  // namespace
}  // namespace octavo::test
