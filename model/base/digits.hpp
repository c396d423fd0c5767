#pragma once
#include <cmath>

namespace tutti::internal {

/// The power of ten that scales a number to `digits` digits before the point.
/// @pre value > 0.
[[nodiscard]] inline double digit_scale(double value, int digits) {
  return std::pow(10, digits - 1) / std::pow(10, std::floor(std::log10(value)));
}

/// The nearest number of `digits` digits: short in a file.
[[nodiscard]] inline double to_digits(double value, int digits) {
  const double scale = digit_scale(value, digits);
  return std::round(value * scale) / scale;
}

/// The nearest number of `digits` digits that is not above `value`.
[[nodiscard]] inline double down_to_digits(double value, int digits) {
  const double scale = digit_scale(value, digits);
  return std::floor(value * scale) / scale;
}

}  // namespace tutti::internal
