#pragma once
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "model/base/wide.hpp"
#include "sched/analyses/analysis.hpp"

namespace tutti::internal {

/// A utilisation of 1, in units of 2^-64.
inline constexpr UnsignedWide kWholeUse = UnsignedWide{1} << 64;

/// The sum of C/T, compared with 1 without a rounding error.
///
/// Keeps a lower and an upper bound in fixed point; the fractions themselves are divided out, digit by digit, only when
/// 1 lies between the two.
class UtilizationSum {
 public:
  /// @pre  wcet >= 0, period > 0.
  void add(Duration wcet, Duration period);

  /// How the exact sum compares with 1.
  [[nodiscard]] std::strong_ordering compare_with_one() const;

  /// A lower bound on 1 - U, in units of 2^-64; 0 where none is known.
  [[nodiscard]] UnsignedWide slack() const;

  /// An upper bound on 1 - U, in units of 2^-64; 0 where U >= 1 is known.
  [[nodiscard]] UnsignedWide most_slack() const;

 private:
  struct Share {
    std::int64_t wcet;
    std::int64_t period;
  };

  UnsignedWide lower_ = 0;  ///< 2^-64; stands still once it exceeds 1
  UnsignedWide upper_ = 0;  ///< 2^-64; as `lower_`
  std::vector<Share> shares_;
};

/// The sum over a whole set.
[[nodiscard]] UtilizationSum utilization_sum(std::span<const TaskTiming> tasks);

/// Whether U <= 1, decided exactly.
[[nodiscard]] bool utilization_at_most_one(std::span<const TaskTiming> tasks);

/// The utilisation for people to read; rounded, so no verdict may rest on it.
[[nodiscard]] double utilization(std::span<const TaskTiming> tasks);

}  // namespace tutti::internal
