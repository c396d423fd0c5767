#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tutti::internal {

/// A mistake in the form of a YAML text, at the place where a person finds it: a parser notices it later, often at the
/// next line or at the end.
struct TextMistake {
  int line = 0;    ///< from 1
  int column = 0;  ///< from 1
  std::string sentence;
};

/// A quote that is never closed: a parser takes the rest of the text for its value.
[[nodiscard]] std::optional<TextMistake> unclosed_quote(std::string_view text);

/// The mistake that made a parser stop; nothing where it is none of the usual ones.
/// @param line    from 1, at which the parser stopped
/// @param column  from 1
[[nodiscard]] std::optional<TextMistake> find_mistake(std::string_view text, int line, int column);

}  // namespace tutti::internal
