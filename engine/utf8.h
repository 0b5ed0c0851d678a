// UTF-8 to code points and back, and forms of text that are safe to show in a message.
// A character is one Unicode code point everywhere in octavo. Strict: surrogates, overlong forms and values over U+10FFFF are refused.
#ifndef OCTAVO_ENGINE_UTF8_H_
#define OCTAVO_ENGINE_UTF8_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

// Throws Error that names the first bad byte and its offset.
std::u32string DecodeUtf8(std::string_view text);

// `code_point` must be a Unicode scalar value.
void AppendUtf8(char32_t code_point, std::string& out);

// `text` with control characters, backslashes and line separators as \n, \t, \\ or \uXXXX: one line, whatever it held.
// Bytes that are not UTF-8 become U+FFFD.
std::string EscapeControls(std::string_view text);

// As EscapeControls, and also the characters that change the direction of the text behind them (bidirectional controls), which would make a
// message read as another: for names in messages.
std::string EscapeName(std::string_view text);

// For whole messages, whose parts are escaped already: as EscapeName, but backslashes stay.
std::string EscapeForMessage(std::string_view text);

// For a terminal: as EscapeForMessage, but line ends and tabs stay as well.
std::string EscapeForTerminal(std::string_view text);

// The inverse of EscapeControls: \n, \t, \\ and \uXXXX (two of them for a surrogate pair). Throws Error for any other escape.
std::string ReadEscapes(std::string_view text);

// 'text' in quotes, escaped, cut after 60 characters: for names that come out of files.
std::string Quote(std::string_view text);

// A path in quotes, escaped, whole: its end says most.
std::string QuotePath(std::string_view path);

// "U+20AC '€'"
std::string DescribeCodePoint(char32_t code_point);

// "1 thread", "2 threads"
std::string Counted(uint64_t count, std::string_view noun);

// `text` with each run of bytes that is not UTF-8 replaced by U+FFFD.
std::string ReplaceInvalidUtf8(std::string_view text);

}  // namespace octavo

#endif  // OCTAVO_ENGINE_UTF8_H_
