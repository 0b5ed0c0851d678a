// UTF-8 in and out: every code point, every kind of bad byte, and the forms that are safe to show.
#include "engine/utf8.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/errors.h"
#include "tests/testing/random.h"

namespace octavo::test {
namespace {

using std::string_literals::operator""s;

std::string Encoded(char32_t code_point) {
  std::string out;
  AppendUtf8(code_point, out);
  return out;
}

TEST(Utf8, EveryCodePointComesBack) {
  std::string all;
  std::u32string expected;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    AppendUtf8(c, all);
    expected.push_back(c);
  }
  EXPECT_EQ(all.size(), 128 + 2 * 1920 + 3 * (63488 - 2048) + 4 * 1048576u);
  EXPECT_TRUE(DecodeUtf8(all) == expected);
}

TEST(Utf8, KnownEncodings) {
  EXPECT_EQ(Encoded('A'), "A");
  EXPECT_EQ(Encoded(0), "\0"s);
  EXPECT_EQ(Encoded(U'é'), "\xC3\xA9");
  EXPECT_EQ(Encoded(U'€'), "\xE2\x82\xAC");
  EXPECT_EQ(Encoded(U'😀'), "\xF0\x9F\x98\x80");
  EXPECT_TRUE(DecodeUtf8("").empty());
}

TEST(Utf8, RefusesBadBytesByPlace) {
  const auto fails = [](const std::string& text, std::string_view place) {
    return Fails([&] { DecodeUtf8(text); }, {place, "not UTF-8"});
  };
  EXPECT_TRUE(fails("\xFF", "byte 0 (0xFF)"));
  EXPECT_TRUE(fails("ab\x80", "byte 2 (0x80)"));
  EXPECT_TRUE(fails("é\xC3", "byte 2 (0xC3)"));             // cut
  EXPECT_TRUE(fails("\xE2\x82", "byte 0 (0xE2)"));          // cut
  EXPECT_TRUE(fails("\xF0\x9F\x98", "byte 0 (0xF0)"));      // cut
  EXPECT_TRUE(fails("\xC3\x28", "byte 0 (0xC3)"));          // no continuation
  EXPECT_TRUE(fails("\xE2\x28\xAC", "byte 0 (0xE2)"));      // no continuation
  EXPECT_TRUE(fails("\xE2\x82\x28", "byte 0 (0xE2)"));      // no continuation
  EXPECT_TRUE(fails("\xC0\x80", "byte 0 (0xC0)"));          // overlong
  EXPECT_TRUE(fails("\xC1\xBF", "byte 0 (0xC1)"));          // overlong
  EXPECT_TRUE(fails("\xE0\x9F\xBF", "byte 0 (0xE0)"));      // overlong
  EXPECT_TRUE(fails("\xF0\x8F\xBF\xBF", "byte 0 (0xF0)"));  // overlong
  EXPECT_TRUE(fails("\xED\xA0\x80", "byte 0 (0xED)"));      // surrogate
  EXPECT_TRUE(fails("\xED\xBF\xBF", "byte 0 (0xED)"));      // surrogate
  EXPECT_TRUE(fails("\xF4\x90\x80\x80", "byte 0 (0xF4)"));  // beyond U+10FFFF
  EXPECT_TRUE(fails("\xF5\x80\x80\x80", "byte 0 (0xF5)"));
}

// Two bytes of any value: valid exactly when both are ASCII or they are one code point of two bytes.
TEST(Utf8, AllPairsOfBytes) {
  int valid = 0;
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      try {
        valid += DecodeUtf8(text).size() > 0;
      } catch (const Error&) {
      }
    }
  }
  EXPECT_EQ(valid, 128 * 128 + 1920);
}

TEST(Utf8, ReplacesEachRunOfBadBytes) {
  EXPECT_EQ(ReplaceInvalidUtf8("naïve"), "naïve");
  EXPECT_EQ(ReplaceInvalidUtf8("a\xFF\xFE\x80z"), "a\uFFFDz");
  EXPECT_EQ(ReplaceInvalidUtf8("\xFF"
                               "a\xFF"),
            "\uFFFDa\uFFFD");
  EXPECT_EQ(ReplaceInvalidUtf8("é\xC3"), "é\uFFFD");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE2\x82"), "\uFFFD");
  EXPECT_EQ(ReplaceInvalidUtf8(""), "");
}

TEST(Escapes, MakeOneSafeLine) {
  EXPECT_EQ(EscapeControls("a\nb\tc\\d"), "a\\nb\\tc\\\\d");
  EXPECT_EQ(EscapeControls("\x01\x1B[31m\x7F"), "\\u0001\\u001B[31m\\u007F");
  EXPECT_EQ(EscapeControls("\u0085\u009F\u2028\u2029"), "\\u0085\\u009F\\u2028\\u2029");
  EXPECT_EQ(EscapeControls("\0"s), "\\u0000");
  EXPECT_EQ(EscapeControls("é€😀\" \u00A0"), "é€😀\" \u00A0");
  EXPECT_EQ(EscapeControls("a\xFF"), "a\uFFFD");
}

// Those that turn the direction of what follows them: data keeps them, names and whole messages do not.
TEST(Escapes, OfNamesMessagesAndTerminals) {
  const std::string bidi = "\u061C\u200E\u200F\u202A\u202E\u2066\u2069";
  const std::string escaped = "\\u061C\\u200E\\u200F\\u202A\\u202E\\u2066\\u2069";
  EXPECT_EQ(EscapeControls(bidi), bidi);
  EXPECT_EQ(EscapeName(bidi + "\\\n\t\u009B"), escaped + "\\\\\\n\\t\\u009B");
  EXPECT_EQ(EscapeForMessage(bidi + "\\\n\t\u009B"), escaped + "\\\\n\\t\\u009B");
  EXPECT_EQ(EscapeForTerminal(bidi + "\\\n\t\u009B\r\x1B"), escaped + "\\\n\t\\u009B\\u000D\\u001B");
  EXPECT_EQ(EscapeForTerminal("é\u200D😀\u2029\xFF"), "é\u200D😀\\u2029\uFFFD") << "joiners are no controls";
  EXPECT_EQ(Quote("\u202Eabc"), "'\\u202Eabc'");
  EXPECT_EQ(QuotePath("\u2066abc"), "'\\u2066abc'");
}

TEST(Escapes, AreReadBack) {
  EXPECT_EQ(ReadEscapes("a\\nb\\tc\\\\d"), "a\nb\tc\\d");
  EXPECT_EQ(ReadEscapes("\\u00e9\\u20AC"), "é€");
  EXPECT_EQ(ReadEscapes("\\uD83D\\uDE00"), "😀");
  EXPECT_EQ(ReadEscapes("\\u0000"), "\0"s);
  EXPECT_EQ(ReadEscapes("plain"), "plain");
  std::string all;
  for (char32_t c = 0; c < 0x3000; ++c) AppendUtf8(c, all);
  EXPECT_TRUE(ReadEscapes(EscapeControls(all)) == all);
}

TEST(Escapes, RefuseWhatTheyDoNotKnow) {
  const auto fails = [](const std::string& text, std::string_view part) {
    return Fails([&] { ReadEscapes(text); }, {part});
  };
  EXPECT_TRUE(fails("a\\", "backslash"));
  EXPECT_TRUE(fails("\\x41", "backslash"));
  EXPECT_TRUE(fails("\\", "backslash"));
  EXPECT_TRUE(fails("ab\\u12", "byte 2"));
  EXPECT_TRUE(fails("\\u12G4", "byte 0"));
  EXPECT_TRUE(fails("\\uD83D", "D83D"));
  EXPECT_TRUE(fails("\\uDE00\\uD83D", "DE00"));
  EXPECT_TRUE(fails("\\uD83D\\u0041", "D83D"));
  EXPECT_TRUE(fails("\\uD83D\\n", "D83D"));
  EXPECT_TRUE(fails("\\uD83D\\u00", "byte 6"));
}

TEST(Quote, CutsEscapesAndNeverBreaksACharacter) {
  EXPECT_EQ(Quote("abc"), "'abc'");
  EXPECT_EQ(Quote(""), "''");
  EXPECT_EQ(Quote("a\nb"), "'a\\nb'");
  EXPECT_EQ(Quote(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(Quote(std::string(61, 'x')), "'" + std::string(60, 'x') + "…'");
  for (const std::string_view character : {"é", "€", "😀"}) {
    std::string text, shown;
    for (int i = 0; i < 200; ++i) text += character;
    for (int i = 0; i < 60; ++i) shown += character;
    EXPECT_EQ(Quote(text), "'" + shown + "…'");
  }
  EXPECT_EQ(Quote(std::string(1000, '\xFF')), "'\uFFFD'");
}

TEST(Quote, HostileBytesMakeOneShortLine) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string text(random.Below(400), ' ');
    for (char& c : text) c = static_cast<char>(random.Bits());
    const std::string quoted = Quote(text);
    EXPECT_EQ(ReplaceInvalidUtf8(quoted), quoted);
    EXPECT_LT(quoted.size(), 400u);
    for (const char32_t c : DecodeUtf8(quoted)) EXPECT_TRUE(c >= 0x20 && c != 0x7F);
  }
}

TEST(DescribeCodePoint, NamesNumberAndCharacter) {
  EXPECT_EQ(DescribeCodePoint(U'€'), "U+20AC '€'");
  EXPECT_EQ(DescribeCodePoint('\t'), "U+0009 '\\t'");
  EXPECT_EQ(DescribeCodePoint(0x1F600), "U+1F600 '😀'");
}

}  // namespace
}  // namespace octavo::test
