#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sched/admission/admission.hpp"
#include "sched/tasks/task.hpp"

namespace tutti {

/// Which end of a range of values is looked for.
enum class Extreme : std::uint8_t { Largest, Smallest };

/// A value that holds and one that does not.
struct Boundary {
  std::int64_t holding = 0;
  std::int64_t failing = 0;
};

/// Two neighbours of that kind between two such values, at round numbers; found by halving.
/// @param holds     whether a value holds; the same answer whenever it is asked.
/// @param between   both >= 0, in either order.
/// @param fineness  the neighbours are at most this part of themselves apart, or next to each other; a power of ten.
[[nodiscard]] Boundary find_boundary(const std::function<bool(std::int64_t)>& holds, Boundary between,
                                     std::int64_t fineness = 10'000);

/// Where to look for it.
struct CapacityQuestion {
  Extreme wanted = Extreme::Largest;
  std::int64_t start = 0;  ///< what the user has now: the search looks more closely around here
  std::int64_t least = 0;  ///< >= 0
  std::int64_t most = 0;   ///< >= least
};

/// Neighbouring values that were tried and do not hold, although a more extreme one does.
struct Hole {
  std::int64_t from = 0;  ///< the smallest that was tried
  std::int64_t to = 0;    ///< the largest

  friend bool operator==(const Hole&, const Hole&) = default;
};

/// How far one can go.
struct Capacity {
  std::optional<std::int64_t> value;   ///< holds; nothing: no value that was tried does
  std::optional<std::int64_t> beyond;  ///< the next value, which does not hold; nothing: `value` ends the range
  std::vector<Hole> holes;             ///< ascending; on the other side of `value`
  std::int64_t tried = 0;              ///< values
};

/// The most extreme value that holds.
///
/// What holds need not hold for every more modest value: bandwidth sharing, blocking and priorities are not monotone.
/// So the answer is right in this sense: `value` was tried and holds, `beyond` was tried and does not and is at most a
/// 10,000th of it away (the next whole number, below 100,000), and none of these beyond it holds: the ends of the
/// range, all doublings and halvings of `start` in it, eight steps in each of the three nearest, 64 in the one in which
/// the answer lies. On the other side (up to 4 times `start` or the answer, where the smallest is wanted) the same
/// values and 64 more are tried, and those that fail are told as holes. Where holding is monotone, no value of the
/// range beyond `beyond` holds.
///
/// @param holds  whether a value holds; the same answer whenever it is asked.
[[nodiscard]] Capacity find_capacity(const std::function<bool(std::int64_t)>& holds, const CapacityQuestion& question);

/// A factor of 1, as `wcet_growth` counts: in ten-thousandths.
inline constexpr std::int64_t kScalingOne = 10'000;

/// The largest factor by which all worst-case times could grow at once and every deadline still be proven, in
/// ten-thousandths, rounded down: below one they would have to shrink. What it leaves is the margin of a set.
///
/// What holds for some worst-case times holds for smaller ones, down to the best cases of periodic tasks, so halving
/// finds it.
///
/// @param timings  [n] of the tasks, as the controller found them
/// @return  nothing where no time grows beyond all measure: above a factor of a million, or where no task takes time.
[[nodiscard]] std::optional<std::int64_t> critical_scaling_factor(std::span<const TaskTiming> timings, Policy policy);
/// The same for all partitions of a set.
[[nodiscard]] std::optional<std::int64_t> critical_scaling_factor(const AdmissionVerdict& verdict, Policy policy);

}  // namespace tutti
