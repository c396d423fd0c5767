#pragma once
#include <vector>

#include "sched/admission.hpp"

namespace tutti {

/// The tasks that share a part of the machine, directly or through others.
struct Partition {
  std::vector<TaskId> tasks;  ///< ascending

  friend bool operator==(const Partition&, const Partition&) = default;
};

/// Cuts a set into groups of tasks that share nothing: no link or shared capacity on the ways of their copies, no copy
/// engine, no GPU (kernels exclude each other there, and its memory has a limit), no cpu for kernels, not the host for
/// host steps, which may run on any cpu.
///
/// A memory alone does not connect: what it can carry is said by its links and by the shared capacities that they are
/// members of, and copies that meet in none of them have the same rates together as alone. Nobody knows what a task
/// with a declared Wcet and no steps uses, so one such task puts all into one group.
///
/// @return  in the order of their first tasks; every task is in one.
[[nodiscard]] std::vector<Partition> partitions_of(const TaskSet& set);

/// What the controller says of one group.
struct PartitionVerdict {
  Partition partition;
  AdmissionVerdict
      verdict;  ///< of its tasks in their order; tasks in witnesses are those of the whole set; admits nothing
};

/// Decides each group as if it had the machine for itself: what holds where they run independently of each other, each
/// with its own queue of ready jobs. A dispatcher that runs one job at a time for the whole machine is not that.
/// @param partitions  of the set
[[nodiscard]] std::vector<PartitionVerdict> decide_apart(const AdmissionController& controller, const TaskSet& set,
                                                         const std::vector<Partition>& partitions);

}  // namespace tutti
