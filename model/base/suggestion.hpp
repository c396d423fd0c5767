#pragma once
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tutti::internal {

/// Levenshtein's distance, in which two neighbours that change places are one edit (Damerau).
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above, row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

/// A word without what people mix up in names: case, and '-' for '_'.
inline std::string without_case(std::string_view word) {
  std::string folded(word);
  for (char& c : folded) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return folded;
}

/// The word nearest to a misspelled one; nothing where none is near.
[[nodiscard]] inline std::optional<std::string_view> nearest_word(std::string_view word,
                                                                  std::span<const std::string_view> known) {
  constexpr std::size_t kShort = 3;  // 'no' is not 'on': shorter words begin alike
  if (word.empty() || word.size() > 64) return std::nullopt;
  const std::string folded = without_case(word);
  std::optional<std::string_view> nearest;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;  // further away is another word
  for (const std::string_view other : known) {
    if (other.empty()) continue;  // a name that is missing
    const std::size_t distance = edit_distance(folded, without_case(other));
    if (distance < least) least = distance, nearest = other;
  }
  if (nearest && least > 0 && word.size() < kShort && std::tolower(nearest->front()) != folded.front())
    return std::nullopt;
  return nearest;
}

/// " did you mean 'x'?" for the nearest of the words, if one is near; otherwise empty.
[[nodiscard]] inline std::string suggestion(std::string_view word, std::span<const std::string_view> known) {
  const auto nearest = nearest_word(word, known);
  return nearest ? fmt::format(" did you mean '{}'?", *nearest) : "";
}

/// That, or what else is to be done where no word is near.
[[nodiscard]] inline std::string suggestion_or(std::string_view word, std::span<const std::string_view> known,
                                               std::string_view otherwise) {
  const std::string guess = suggestion(word, known);
  return guess.empty() ? fmt::format(" {}", otherwise) : guess;
}

}  // namespace tutti::internal
