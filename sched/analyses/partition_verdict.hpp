#pragma once
#include <cstddef>

#include "sched/analyses/analysis.hpp"
#include "sched/tasks/partition.hpp"

namespace tutti {

/// What a test says of a partition's tasks as if there were no others, with the tasks' ids in the whole set.
/// @param tasks  so many the set has
[[nodiscard]] Verdict in_whole_set(Verdict verdict, const Partition& partition, std::size_t tasks);

/// The other way round: the ids that the tasks have among those of their partition.
[[nodiscard]] Verdict in_partition(Verdict verdict, const Partition& partition);

}  // namespace tutti
