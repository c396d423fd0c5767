#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

namespace tutti::programs {

/// Deepest nesting of the JSON that a program reads. What is nested deeper is refused before it is parsed: to print a
/// value takes a call for each level.
inline constexpr std::size_t kMostJsonLevels = 64;

/// The byte of a JSON text from which on it is nested deeper; nothing where it is not.
[[nodiscard]] constexpr std::optional<std::size_t> too_deep_at(std::string_view json) {
  std::size_t level = 0;
  bool in_text = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (in_text) {
      if (c == '\\') ++at;  // and what it escapes
      if (c == '"') in_text = false;
      continue;
    }
    if (c == '"') in_text = true;
    if (c == '[' || c == '{') ++level;
    if ((c == ']' || c == '}') && level > 0) --level;
    if (level > kMostJsonLevels) return at;
  }
  return std::nullopt;
}

}  // namespace tutti::programs
