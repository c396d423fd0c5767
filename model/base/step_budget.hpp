#pragma once
#include <cstdint>

namespace tutti::internal {

/// Remaining budget of an analysis, in visits to a task: it makes every test end.
///
/// The problems are pseudo-polynomial at best, so some sets would take years; the answer for them is *unknown*.
class StepBudget {
 public:
  explicit constexpr StepBudget(std::int64_t visits) : left_(visits) {}

  /// Takes `visits` off.
  /// @return  whether they were still there.
  [[nodiscard]] constexpr bool spend(std::int64_t visits) {
    left_ -= visits;
    return left_ >= 0;
  }

 private:
  std::int64_t left_;
};

/// Budget of one walk, in visits: a fraction of a second.
inline constexpr std::int64_t kVisitsPerWalk = 16'000'000;

}  // namespace tutti::internal
