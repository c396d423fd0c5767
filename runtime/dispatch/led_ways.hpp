#pragma once
#include <vector>

#include "runtime/core/led_arrays.hpp"
#include "sched/overlap/local_deadlines.hpp"

namespace tutti::internal {

/// How jobs overlap that a conductor leads: operations in the order of their resources, regions as batches in the order
/// of `OperationSet::operations`.
/// @param tasks  get the places of their steps and batches
[[nodiscard]] LedWays led_ways(const OperationSet& operations, const LocalDeadlines& deadlines, Policy policy,
                               std::vector<LedTask>& tasks);

}  // namespace tutti::internal
