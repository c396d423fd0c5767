#pragma once
#include <cstddef>

#include "sched/analyses/analysis.hpp"
#include "sched/tasks/partition.hpp"

namespace tutti::internal {

/// Verdict of a test on one partition alone, with task ids changed to those in the whole set.
/// @param tasks  number of tasks in the whole set
[[nodiscard]] Verdict in_whole_set(Verdict verdict, const Partition& partition, std::size_t tasks);

/// Inverse of `in_whole_set`: task ids become positions among the tasks of the partition.
[[nodiscard]] Verdict in_partition(Verdict verdict, const Partition& partition);

}  // namespace tutti::internal
