#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace tutti::internal {

/// The value that a share of the values stay below, 0 to 1; by linear interpolation. 0 of none.
[[nodiscard]] inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

[[nodiscard]] inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

}  // namespace tutti::internal
