#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace tutti::internal {

/// The median of times in ns, or the upper one of two; 0 of none.
[[nodiscard]] inline std::int64_t median_time(std::vector<std::int64_t> times) {
  if (times.empty()) return 0;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

/// The median distance from the median.
[[nodiscard]] inline std::int64_t variation_of_times(const std::vector<std::int64_t>& times) {
  const std::int64_t middle = median_time(times);
  std::vector<std::int64_t> away;
  away.reserve(times.size());
  for (const std::int64_t time : times) away.push_back(std::abs(time - middle));
  return median_time(std::move(away));
}

}  // namespace tutti::internal
