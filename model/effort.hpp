#pragma once
#include <algorithm>
#include <cstddef>

namespace tutti {

/// What a planner that searches may spend on one plan, as a share of what it may spend at most: work that is counted,
/// no time that is measured, so that the plan is the same everywhere.
struct Effort {
  /// So many plans share what they may spend: each of the first 20 all that one may, each of more a part.
  [[nodiscard]] static constexpr Effort shared_by(std::size_t plans) {
    return {std::min(1.0, 20.0 / static_cast<double>(std::max<std::size_t>(plans, 1)))};
  }

  double share = 1;  ///< 0 to 1
};

}  // namespace tutti
