#pragma once
#include <vector>

#include "sched/overlap/local_deadlines.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::test {

/// What an overlapping run did at its worst.
struct OverlapOutcome {
  std::vector<double> responses;  ///< [tasks] longest from the arrival, ns
  double latest = 0;              ///< ns by which an operation was over behind its local deadline, at most
};

/// Plays one run of a set whose operations overlap, event by event: each resource takes the ready operation that is due
/// first, without preemption between its chunks' ends, and copies that flow at the same time share the machine's links
/// as `slow_max_min` says. Arrivals, readiness, sizes, times and bandwidths are drawn: inside what was declared, and
/// often at its worst ends. Written from the task set and the machine alone.
/// @pre the machine has no set-up times and no margin, and transfers are not cut.
[[nodiscard]] OverlapOutcome play_overlapping(const TaskSet& set, const OperationSet& operations,
                                              const LocalDeadlines& deadlines, Random& random);

}  // namespace tutti::internal::test
