#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sched/admission/admission.hpp"
#include "sched/tasks/task.hpp"
#include "sched/whatif/tunable_parameter.hpp"

namespace tutti::internal {

/// Which end of a range of values is looked for.
enum class Extreme : std::uint8_t { Largest, Smallest };

/// A value that holds and one that does not.
struct Boundary {
  std::int64_t holding = 0;
  std::int64_t failing = 0;
};

/// Narrows a boundary to two neighbouring values, at round numbers, by bisection.
/// @param holds     whether a value holds; the same answer whenever it is asked.
/// @param between   both >= 0, in either order.
/// @param fineness  the neighbours differ by at most 1/fineness of themselves, or by 1; a power of ten.
[[nodiscard]] Boundary find_boundary(const std::function<bool(std::int64_t)>& holds, Boundary between,
                                     std::int64_t fineness = 10'000);

/// Direction and range of a capacity search.
struct CapacityQuestion {
  Extreme wanted = Extreme::Largest;
  std::int64_t start = 0;               ///< the present value: the search is finer around it
  std::int64_t least = 0;               ///< >= 0
  std::int64_t most = 0;                ///< >= least
  std::vector<std::int64_t> also = {};  ///< further values that are tried
};

/// Neighbouring values that were tried and do not hold, although a more extreme one does.
struct Hole {
  std::int64_t from = 0;  ///< the smallest that was tried
  std::int64_t to = 0;    ///< the largest

  friend bool operator==(const Hole&, const Hole&) = default;
};

/// Result of a capacity search.
struct Capacity {
  std::optional<std::int64_t> value;   ///< holds; nothing: no value that was tried does
  std::optional<std::int64_t> beyond;  ///< the next value, which does not hold; nothing: `value` ends the range
  std::vector<Hole> holes;             ///< ascending; on the other side of `value`
  std::int64_t tried = 0;              ///< values
};

/// The most extreme value that holds.
///
/// A value that holds does not imply that every more modest value holds: bandwidth sharing, blocking and priorities are
/// not monotone. So the answer is right in this sense: `value` was tried and holds, `beyond` was tried and does not and
/// is at most a 10,000th of it away (the next whole number, below 100,000), and none of these beyond it holds: the ends
/// of the range, `also`, all doublings and halvings of `start` in it, eight steps in each of the three nearest, 64 in
/// the one in which the answer lies. On the other side (up to 4 times `start` or the answer, where the smallest is
/// wanted) the same values and 64 more are tried, and those that fail are reported as holes. Where holding is monotone,
/// no value of the range beyond `beyond` holds.
///
/// @param holds  whether a value holds; the same answer whenever it is asked.
[[nodiscard]] Capacity find_capacity(const std::function<bool(std::int64_t)>& holds, const CapacityQuestion& question);

/// A factor of 1, as `wcet_growth` counts: in ten-thousandths.
inline constexpr std::int64_t kScalingOne = 10'000;

/// Critical scaling factor: the largest factor by which all Wcets can grow at once with every deadline still proven, in
/// ten-thousandths, rounded down. Below one, they would have to shrink. Its excess over one is the margin of a set.
///
/// A set that is schedulable for some worst-case times is schedulable for smaller ones, down to the best cases of
/// periodic tasks, so bisection finds the factor.
///
/// @param timings  [n] of the tasks, as the controller found them
/// @return  nothing where the factor exceeds a million, as where no task takes time.
[[nodiscard]] std::optional<std::int64_t> critical_scaling_factor(std::span<const TaskTiming> timings, Policy policy);
/// The question for a number of a set: from its present value, over all that it may be. For a period of strictly
/// periodic tasks the simple ratios to the other periods are tried, too: with others arrivals may meet in every
/// distance.
[[nodiscard]] CapacityQuestion question_for(const TaskStudy& study, const TunableParameter& tunable, Extreme wanted);

/// The smallest factor of all partitions of a set; where jobs overlap, that of their operations.
/// @param verdict  of the set
[[nodiscard]] std::optional<std::int64_t> critical_scaling_factor(const TaskSet& set, const AdmissionVerdict& verdict);

}  // namespace tutti::internal
