#pragma once
#include <array>
#include <vector>

#include "sched/overlap/local_deadlines.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::test {

/// What an overlapping run did at its worst.
struct OverlapOutcome {
  std::vector<double> responses;  ///< [tasks] longest from the arrival, ns
  double latest = 0;              ///< ns by which an operation was over behind its local deadline, at most
  /// [kinds of parts] longest time of a region, over what it is bound to: from when it could begin until its resource
  /// is free again
  std::array<double, 3> regions{};
  bool doubled = false;  ///< two copies held one engine at a time
};

/// Plays one run of a set whose operations overlap, event by event: each resource takes the ready operation that is due
/// first, without preemption between its chunks' ends; copies that flow at the same time share the machine's links as
/// `slow_max_min` says; one thread begins regions and sees their ends, a visit at a time. Arrivals, readiness, sizes,
/// times, costs, bandwidths and the shares of the visits are drawn: inside what was declared, and often at its worst
/// ends.
///
/// Written from the READMEs (configs/KEYS.md for costs, sched/README.md for the visits), the task set and the machine
/// alone: it takes from the plan what runs where and when, and no time.
[[nodiscard]] OverlapOutcome play_overlapping(const TaskSet& set, const OperationSet& operations,
                                              const LocalDeadlines& deadlines, Random& random);

}  // namespace tutti::internal::test
