#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sched/tasks/policy.hpp"
#include "sched/tasks/task_timing.hpp"

namespace tutti::internal {

/// Rank of a task under a policy of fixed priorities: smaller is more urgent.
/// @pre  policy is not Edf.
[[nodiscard]] std::int64_t priority_rank(const TaskTiming& task, Policy policy);

/// Positions of the tasks from the highest priority to the lowest: by period (RM), deadline (DM) or as given; of two
/// equal ones the earlier in the file is higher.
/// @pre  policy is not Edf.
[[nodiscard]] std::vector<std::size_t> priority_order(std::span<const TaskTiming> tasks, Policy policy);

}  // namespace tutti::internal
