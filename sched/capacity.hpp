#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sched/analysis.hpp"

namespace tutti {

/// Which end of a range of values is looked for.
enum class Extreme : std::uint8_t { Largest, Smallest };

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
  std::optional<std::int64_t> beyond;  ///< the value next to it, which does not hold; nothing: `value` ends the range
  std::vector<Hole> holes;             ///< ascending; on the other side of `value`
  std::int64_t tried = 0;              ///< values
};

/// The most extreme value that holds.
///
/// What holds need not hold for every more modest value: bandwidth sharing, blocking and priorities are not monotone.
/// So the answer is right in this sense: `value` was tried and holds, its neighbour `beyond` was tried and does not, and
/// none of these beyond it holds: the ends of the range, all doublings and halvings of `start` in it, eight steps in each
/// of the three nearest, 64 in the one in which the answer lies. On the other side the same values and 64 more are tried,
/// and those that fail are told as holes. Where holding is monotone, `value` is exact.
///
/// @param holds  whether a value holds; the same answer whenever it is asked.
[[nodiscard]] Capacity find_capacity(const std::function<bool(std::int64_t)>& holds, const CapacityQuestion& question);

/// The largest factor by which all worst-case times could grow at once and every deadline still be proven, in
/// millionths, rounded down: below a million they would have to shrink. What it leaves is the margin of a set.
///
/// Every test holds for smaller worst-case times where it holds for larger ones, so halving finds it.
///
/// @return  nothing where no time grows beyond all measure: above a factor of a million, or where no task takes time.
[[nodiscard]] std::optional<std::int64_t> wcet_growth(std::span<const TaskTiming> timings, Policy policy);

}  // namespace tutti
