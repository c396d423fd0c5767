#pragma once
#include <algorithm>
#include <cstddef>

namespace tutti::internal {

/// Budget of a planner that searches, for one plan, as a share of its largest budget. It limits counted work, not
/// measured time, so that the plan is the same everywhere.
struct Effort {
  /// The budget of each of `plans` plans: up to 20 plans have the whole budget each, more share that of 20.
  [[nodiscard]] static constexpr Effort shared_by(std::size_t plans) {
    return {std::min(1.0, 20.0 / static_cast<double>(std::max<std::size_t>(plans, 1)))};
  }

  double share = 1;  ///< 0 to 1
};

}  // namespace tutti::internal
