#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "model/base/faults.hpp"
#include "sched/tasks/task.hpp"
#include "sched/tasks/task_set_spec.hpp"

namespace tutti::internal {

/// The tasks of a spec, where those that are after another one have the period and offset of that one.
///
/// No mechanism makes a job wait for the one that it is after: both are ready at once, and the scheduler takes the more
/// urgent one first and, without preemption, to its end; between regions, too, it is the more urgent one. So `after`
/// means equal arrivals without jitter, the same partition (`partitions_of`) and less urgency, and what does not have
/// these is refused.
/// @errors a fault for each: an unknown task, tasks in a circle, another period or offset, jitter, an external release,
///         a task that is more urgent than the one that it is after, jobs that overlap.
[[nodiscard]] std::vector<TaskSpec> with_predecessors(const TaskSetSpec& spec, Faults& faults);

/// [tasks] for those that arrive together with others the position of the first of them, which is after none.
[[nodiscard]] std::vector<std::optional<std::size_t>> arrival_groups(const TaskSet& set);

}  // namespace tutti::internal
