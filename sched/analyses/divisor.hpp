#pragma once
#include <cstdint>
#include <span>

#include "model/base/wide.hpp"
#include "sched/analyses/analysis.hpp"

namespace tutti::internal {

/// Division by a constant: a walk divides by the same periods many times. Each analysis is written once as a template
/// over `Int`: 64 bits where `fits_64_bits`, 128 bits otherwise.
template <class Int>
class Divisor;

/// Multiplies with a reciprocal and corrects the result exactly: a third of the time that a division takes.
template <>
class Divisor<std::int64_t> {
 public:
  /// @pre  number > 0.
  explicit Divisor(std::int64_t number)
      : number_(number), reciprocal_(~std::uint64_t{0} / static_cast<std::uint64_t>(number)) {}

  [[nodiscard]] std::int64_t number() const { return number_; }
  /// floor((2^64 - 1) / number), so 2^64 / number is more than this and at most one more.
  [[nodiscard]] std::uint64_t reciprocal() const { return reciprocal_; }
  /// @pre  dividend >= 0.
  [[nodiscard]] std::int64_t floor(std::int64_t dividend) const {
    // dividend / number less at most dividend / 2^64 < 1: the quotient, or one less.
    const auto guess = static_cast<std::int64_t>((static_cast<UnsignedWide>(dividend) * reciprocal_) >> 64);
    return guess + (dividend - guess * number_ >= number_ ? 1 : 0);
  }

 private:
  std::int64_t number_;
  std::uint64_t reciprocal_;
};

template <>
class Divisor<Wide> {
 public:
  explicit Divisor(std::int64_t number) : number_(number) {}

  [[nodiscard]] std::int64_t number() const { return number_; }
  /// @pre  dividend >= 0.
  [[nodiscard]] Wide floor(Wide dividend) const { return floor_div(dividend, number_); }

 private:
  std::int64_t number_;
};

/// @pre  dividend >= 0.
template <class Int>
[[nodiscard]] Int ceil_div(Int dividend, const Divisor<Int>& divisor) {
  return dividend == 0 ? Int{0} : divisor.floor(dividend - 1) + 1;
}

/// End of every walk; a time that reaches it is "too far".
template <class Int>
inline constexpr Int kEndOf = kFar;
template <>
inline constexpr std::int64_t kEndOf<std::int64_t> = std::int64_t{1} << 61;

/// Plain arithmetic: numbers that fit stay within 63 bits. The 128-bit functions saturate at `kFar`.
[[nodiscard]] constexpr std::int64_t work_of(std::int64_t count, std::int64_t cost) { return count * cost; }
[[nodiscard]] constexpr std::int64_t capped_sum(std::int64_t a, std::int64_t b) { return a + b; }

/// Bound on the numbers of a task for 64-bit analyses: 9 minutes in ns.
inline constexpr std::int64_t kSmall = std::int64_t{1} << 39;

/// Whether 64 bits hold all that an analysis computes: every number is below `kSmall`, no task is ready only after its
/// deadline and there are at most 2^20 tasks, so that the costs add up to less than 2^59.
///
/// With U <= 1 the work of an interval of length t below `kEndOf` is then at most t + jitter + costs < 2^62. A walk
/// upwards reaches at most (visits + 1) 2^39 < `kEndOf`, because a visit passes one period.
[[nodiscard]] inline bool fits_64_bits(std::span<const TaskTiming> tasks) {
  if (tasks.size() > (std::size_t{1} << 20)) return false;
  std::int64_t together = 0;  // bitwise or of all numbers: negative where one is
  for (const TaskTiming& task : tasks)
    together |= task.wcet.count() | task.period.count() | task.deadline.count() | task.jitter.count() |
                (task.deadline.count() - task.jitter.count());
  return together >= 0 && together < kSmall;
}

}  // namespace tutti::internal
