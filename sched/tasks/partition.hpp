#pragma once
#include <span>
#include <vector>

#include "sched/tasks/task.hpp"
#include "sched/tasks/task_timing.hpp"

namespace tutti::internal {

/// The tasks that share a part of the machine, directly or through others.
struct Partition {
  std::vector<TaskId> tasks;  ///< ascending

  friend bool operator==(const Partition&, const Partition&) = default;
};

/// Cuts a set into groups of tasks that share nothing: no link or shared capacity on the ways of their copies, no copy
/// engine, no GPU (kernels exclude each other there, and its memory has a limit), no cpu for kernels, not the host for
/// host steps, which may run on any cpu.
///
/// A shared memory alone does not join two groups: its links, and the shared capacities that they are members of, limit
/// it, and copies that meet in none of them have the same rates together as alone. The resources of a task with a
/// declared Wcet and no steps are unknown, so one such task puts all tasks into one group. A task is in the group of
/// the one that it is after, since its jobs wait for that one's.
///
/// @return  in the order of their first tasks; every task is in one group. An empty set is one empty group.
[[nodiscard]] std::vector<Partition> partitions_of(const TaskSet& set);

/// The GPUs that the partition's tasks copy from or to or run kernels on, ascending.
[[nodiscard]] std::vector<VertexId> gpus_of(const TaskSet& set, const Partition& partition);

/// Timings of the partition's tasks, in their order.
/// @param timings  [tasks of the set]
[[nodiscard]] std::vector<TaskTiming> timings_of(const Partition& partition, std::span<const TaskTiming> timings);

}  // namespace tutti::internal
