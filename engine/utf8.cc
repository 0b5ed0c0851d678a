// UTF-8 decoding, encoding and escaping; see utf8.h.
#include "engine/utf8.h"

#include <cstdint>
#include <optional>

#include "engine/fail.h"

namespace octavo {
namespace {

bool IsSurrogate(char32_t value) { return value >= 0xD800 && value <= 0xDFFF; }

// Decodes the code point at text[at] and moves `at` behind it; nullopt, and `at` unmoved, where there is none.
std::optional<char32_t> DecodeNext(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) return text[at++];
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < length) return std::nullopt;
  char32_t value = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return std::nullopt;
    value = value << 6 | (byte(at + i) & 0x3Fu);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || value > 0x10FFFF || IsSurrogate(value)) return std::nullopt;
  at += length;
  return value;
}

// Of C0 and C1, DEL, and the line and paragraph separators, which some readers take for line ends.
bool IsControl(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029; }

// Unicode's Bidi_Control.
bool IsBidiControl(char32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

// `text` with the characters for which `needs_escape` holds escaped; bytes that are not UTF-8 become U+FFFD.
template <typename NeedsEscape>
std::string EscapeWhere(std::string_view text, const NeedsEscape& needs_escape) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : DecodeUtf8(ReplaceInvalidUtf8(text))) {
    if (!needs_escape(c)) {
      AppendUtf8(c, out);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\\') {
      out += "\\\\";
    } else {
      out += fmt::format("\\u{:04X}", static_cast<uint32_t>(c));
    }
  }
  return out;
}

uint32_t ReadFourHexDigits(std::string_view text, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    const char c = at + i < text.size() ? text[at + i] : ' ';
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) Fail("escape \\u at byte {} needs four hexadecimal digits", at - 2);
    value = value << 4 | static_cast<uint32_t>(digit);
  }
  return value;
}

// The code point of the \uXXXX whose digits start at `at`; moves `at` behind it, and behind the second half of a surrogate pair.
char32_t ReadUnicodeEscape(std::string_view text, size_t& at) {
  const char32_t first = ReadFourHexDigits(text, at);
  at += 4;
  if (!IsSurrogate(first)) return first;
  if (first < 0xDC00 && text.substr(at, 2) == "\\u") {
    const char32_t second = ReadFourHexDigits(text, at + 2);
    if (second >= 0xDC00 && second <= 0xDFFF) {
      at += 6;
      return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    }
  }
  Fail("escape \\u{:04X} is half of a surrogate pair", static_cast<uint32_t>(first));
}

}  // namespace

std::u32string DecodeUtf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const std::optional<char32_t> value = DecodeNext(text, at);
    if (!value) Fail("byte {} (0x{:02X}) is not UTF-8", at, static_cast<uint8_t>(text[at]));
    out.push_back(*value);
  }
  return out;
}

void AppendUtf8(char32_t code_point, std::string& out) {
  const auto push = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  const uint32_t c = code_point;
  if (c < 0x80) return push(c);
  if (c < 0x800) {
    push(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      push(0xE0 | c >> 12);
    } else {
      push(0xF0 | c >> 18);
      push(0x80 | (c >> 12 & 0x3F));
    }
    push(0x80 | (c >> 6 & 0x3F));
  }
  push(0x80 | (c & 0x3F));
}

std::string Counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool replaced = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (DecodeNext(text, at)) {
      out.append(text.substr(begin, at - begin));
      replaced = false;
    } else {
      if (!replaced) out += "\uFFFD";
      replaced = true;
      ++at;
    }
  }
  return out;
}

std::string EscapeControls(std::string_view text) {
  return EscapeWhere(text, [](char32_t c) { return IsControl(c) || c == '\\'; });
}

std::string EscapeName(std::string_view text) {
  return EscapeWhere(text, [](char32_t c) { return IsControl(c) || IsBidiControl(c) || c == '\\'; });
}

std::string EscapeForMessage(std::string_view text) {
  return EscapeWhere(text, [](char32_t c) { return IsControl(c) || IsBidiControl(c); });
}

std::string EscapeForTerminal(std::string_view text) {
  return EscapeWhere(text, [](char32_t c) { return (IsControl(c) && c != '\n' && c != '\t') || IsBidiControl(c); });
}

std::string ReadEscapes(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (c != '\\') {
      out.push_back(c);
      continue;
    }
    const char kind = at < text.size() ? text[at] : '\0';
    ++at;
    if (kind == 'n') {
      out.push_back('\n');
    } else if (kind == 't') {
      out.push_back('\t');
    } else if (kind == '\\') {
      out.push_back('\\');
    } else if (kind == 'u') {
      AppendUtf8(ReadUnicodeEscape(text, at), out);
    } else {
      Fail("a backslash must be followed by n, t, \\ or uXXXX, in {}", Quote(text));
    }
  }
  return out;
}

std::string Quote(std::string_view text) {
  constexpr size_t kLongest = 60;
  // Four bytes a character at most: a hostile name of many megabytes is not decoded whole.
  const std::u32string decoded = DecodeUtf8(ReplaceInvalidUtf8(text.substr(0, 4 * kLongest + 4)));
  std::string shown;
  for (size_t i = 0; i < decoded.size() && i < kLongest; ++i) AppendUtf8(decoded[i], shown);
  return fmt::format("'{}{}'", EscapeName(shown), decoded.size() > kLongest ? "…" : "");
}

std::string QuotePath(std::string_view path) { return fmt::format("'{}'", EscapeName(path)); }

std::string DescribeCodePoint(char32_t code_point) {
  std::string text;
  AppendUtf8(code_point, text);
  return fmt::format("U+{:04X} {}", static_cast<uint32_t>(code_point), Quote(text));
}

}  // namespace octavo
