// A head's attention weights as a triangle of characters, for terminals and pipes: no colours, no cursor movements.
#ifndef OCTAVO_TOOLS_TRIANGLE_H_
#define OCTAVO_TOOLS_TRIANGLE_H_

#include <span>
#include <string>
#include <string_view>

namespace octavo::tools {

// One line a row of `weights`, [T, T], row-major, T = text.size(): the darker, the more of the row's weight. Above it the text, one column a
// character; before each row its character. Lines of 80 columns at most: of a longer text the last characters are drawn, and a line says so.
std::string DrawTriangle(std::span<const float> weights, std::u32string_view text);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_TRIANGLE_H_
