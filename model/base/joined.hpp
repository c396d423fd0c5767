#pragma once
#include <span>
#include <string>

namespace tutti::internal {

/// The parts with ", " between them. (fmt's `join` does not compile without warnings on GCC 12.)
[[nodiscard]] inline std::string joined(std::span<const std::string> parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) text.append(i == 0 ? "" : ", ").append(parts[i]);
  return text;
}

}  // namespace tutti::internal
