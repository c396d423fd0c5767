#pragma once
#include <algorithm>
#include <cstdint>

namespace wafer {

/// A rectangle of pixels: `width` columns from `x`, `height` rows from `y`.
struct Box {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  friend bool operator==(const Box&, const Box&) = default;
};

[[nodiscard]] constexpr std::int64_t area(const Box& box) { return std::int64_t{box.width} * box.height; }

/// @return  how many pixels both boxes cover.
[[nodiscard]] constexpr std::int64_t shared_area(const Box& a, const Box& b) {
  const std::int64_t width = std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x);
  const std::int64_t height = std::min(a.y + a.height, b.y + b.height) - std::max(a.y, b.y);
  return std::max<std::int64_t>(width, 0) * std::max<std::int64_t>(height, 0);
}

/// The box with a rim of that many pixels on every side.
[[nodiscard]] constexpr Box with_rim(const Box& box, int rim) {
  return {box.x - rim, box.y - rim, box.width + 2 * rim, box.height + 2 * rim};
}

}  // namespace wafer
