#pragma once
#include <map>
#include <optional>

#include "model/base/faults.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// The cpu of host steps; none where the machine has no cpu.
[[nodiscard]] std::optional<VertexId> first_cpu(const TaskSet& set);

/// Cores that are for the threads which copy pageable memory, by the first cpu on the way: for each copy engine that
/// such copies use the producers of its memory, since those of two engines copy at the same time. Host work has the
/// others.
[[nodiscard]] std::map<VertexId, int> producer_cores(const TaskSet& set);

/// Whether each cpu has a core left for a thread that copies, by `mapped`, of each memory. A set without a machine has
/// none.
[[nodiscard]] bool has_cores_for_copies(const TaskSet& set);

/// Adds a fault for each cpu that has too few cores for them, and for one core of host work where there is some.
void check_producer_cores(const TaskSet& set, Faults& faults);

/// Work of the host in a job, by cpu, ns.
[[nodiscard]] std::map<VertexId, double> host_times(const TaskSet& set, const Task& task);

}  // namespace tutti::internal
