// Strict JSON: what the library would let pass or throw its own exceptions for is one Error that names the text.
#include "engine/json.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/errors.h"

namespace octavo::test {
namespace {

using std::string_literals::operator""s;

::testing::AssertionResult Refused(const std::string& text, std::string_view part, int max_depth = 64) {
  return Fails([&] { ParseJson(text, "the text", max_depth); }, {"the text", part});
}

std::string Nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(ParseJson, ReadsValues) {
  EXPECT_EQ(ParseJson(R"({"a": [1, -2, 0.5, "é€😀\n", true, null]})", "x")->dump(),
            R"({"a":[1,-2,0.5,"é€😀\n",true,null]})");
  EXPECT_EQ(*ParseJson(" 7 \n", "x"), 7);
  EXPECT_EQ(ParseJson("18446744073709551615", "x")->get<uint64_t>(), ~uint64_t{0});
  EXPECT_EQ(*ParseJson("\"\\ud83d\\ude00\"", "x"), "😀");
}

TEST(ParseJson, RefusesWhatIsNotOneValue) {
  for (const std::string text :
       {"",      " ",         "{",    "[1,]", "{\"a\":1,}", "{'a':1}",        "nul", "NaN",      "Infinity",
        "01",    "+1",        "1 2",  "{} x", "// note\n1", "[1] /* note */", "\"a", "\"a\nb\"", "\"\\x\"",
        "[1 2]", "{\"a\" 1}", "{1:2}"}) {
    EXPECT_TRUE(Refused(text, "not valid JSON")) << text;
  }
}

TEST(ParseJson, RefusesWhatIsNotUtf8) {
  for (const std::string text :
       {"\"\xFF\"", "\"\xC3\"", "\"\xED\xA0\x80\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\""}) {
    EXPECT_TRUE(Refused(text, "not valid JSON"));
  }
}

// A byte 0 is not an end.
TEST(ParseJson, RefusesWhatStandsBehindAZeroByte) {
  EXPECT_TRUE(Refused("{}\0"s, "not valid JSON"));
  EXPECT_TRUE(Refused("{}\0{}"s, "not valid JSON"));
  EXPECT_TRUE(Refused("[1]\0 trailing"s, "not valid JSON"));
  EXPECT_TRUE(Refused("\0[1]"s, "not valid JSON"));
}

TEST(ParseJson, NamesThePlace) { EXPECT_TRUE(Refused("[1, x]", "(at byte 5)")); }

TEST(ParseJson, RefusesNumbersThatDoNotFit) {
  EXPECT_TRUE(Refused("1e400", "number"));
  EXPECT_TRUE(Refused("[-1e999]", "number"));
}

TEST(ParseJson, RefusesAKeyTwice) {
  EXPECT_TRUE(Refused(R"({"a": 1, "b": 2, "a": 1})", "key 'a' twice"));
  EXPECT_TRUE(Refused(R"({"o": {"k": 1, "k": 2}})", "key 'k' twice"));
  EXPECT_TRUE(Refused(R"({"a": 1, "\u0061": 2})", "key 'a' twice"));
  EXPECT_TRUE(Refused(R"({"a": {"b": 1}, "a": 2})", "key 'a' twice"));
  // The same key in different objects is well.
  EXPECT_EQ(ParseJson(R"({"a": {"b": 1}, "b": 2})", "x")->size(), 2u);
  EXPECT_EQ(ParseJson(R"({"a": {"a": [{"a": 1}, {"a": 2}]}, "b": {"a": 3}})", "x")->size(), 2u);
}

TEST(ParseJson, BoundsTheNumberOfValues) {
  EXPECT_EQ(ParseJson("[1, {\"a\": 2}]", "x", {64, 4})->size(), 2u);
  EXPECT_TRUE(Fails(
      [] {
        ParseJson("[1, {\"a\": 2}, 3]", "the text", {64, 4});
      },
      {"the text", "holds more than 4 values"}));
}

TEST(ParseJsonMembers, HandsThemOverOneByOne) {
  std::string seen;
  const auto take = [&](const std::string& key, const nlohmann::json& value) {
    seen += key + "=" + value.dump() + ";";
  };
  ParseJsonMembers(R"({"b": [1, {"c": 2}], "a": "x", "b": null})", "x", JsonKind::kObject, "an object", 3, take);
  EXPECT_EQ(seen, R"(b=[1,{"c":2}];a="x";b=null;)")
      << "in the order of the text; keys that come twice are the taker's to refuse";
  seen.clear();
  ParseJsonMembers(R"([[], "x", [[3]]])", "x", JsonKind::kList, "a list", {3, 3}, take);
  EXPECT_EQ(seen, R"(=[];="x";=[[3]];)") << "values are counted in each member";
  ParseJsonMembers(" {} ", "x", JsonKind::kObject, "an object", 1, take);
  ParseJsonMembers("[]", "x", JsonKind::kList, "a list", 1, take);
}

TEST(ParseJsonMembers, RefusesWhatParseJsonRefuses) {
  const auto refused = [](const std::string& text, JsonKind kind, std::string_view part, JsonLimits limits = {}) {
    const auto parse = [&] {
      ParseJsonMembers(text, "the text", kind, "what is wanted", limits, [](const auto&, const auto&) {});
    };
    return Fails(parse, {"the text", part});
  };
  for (const char* text : {"3", "null", "\"x\"", "true", "-1", "0.5", "{}"}) {
    EXPECT_TRUE(refused(text, JsonKind::kList, "expected what is wanted")) << text;
  }
  EXPECT_TRUE(refused("[]", JsonKind::kObject, "is array; expected what is wanted"));
  for (const char* text : {"", "[", "[1", "[1,]", "[] x", "[1}"})
    EXPECT_TRUE(refused(text, JsonKind::kList, "not valid JSON")) << text;
  EXPECT_TRUE(refused(R"({"a": {"k": 1, "k": 2}})", JsonKind::kObject, "key 'k' twice"));
  EXPECT_TRUE(refused("[[[0]]]", JsonKind::kList, "nested more than 2 deep", 2));
  EXPECT_TRUE(refused("[1, [2, 3, 4]]", JsonKind::kList, "more than 3 values", {64, 3}));
  EXPECT_TRUE(refused("[1e999]", JsonKind::kList, "number"));
}

TEST(ParseJson, BoundsTheDepth) {
  EXPECT_EQ(ParseJson(Nested(64), "x")->size(), 1u);
  EXPECT_TRUE(Refused(Nested(65), "nested more than 64 deep"));
  EXPECT_TRUE(Refused(Nested(100'000), "nested more than 64 deep"));
  EXPECT_TRUE(Refused(std::string(100'000, '['), "nested more than 64 deep"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_TRUE(Refused(objects, "nested more than 64 deep"));
  EXPECT_EQ(ParseJson(Nested(4), "x", 4)->size(), 1u);
  EXPECT_TRUE(Refused(Nested(5), "nested more than 4 deep", 4));
  EXPECT_TRUE(Refused("[[{\"a\":[0]}]]", "nested more than 3 deep", 3));
}

}  // namespace
}  // namespace octavo::test
