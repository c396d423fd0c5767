#pragma once
#include <cstdint>

#include "sched/tasks/task.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::test {

/// Three GPUs, one with a single copy engine, behind a memory that they fill, with weights and staged copies; no costs.
[[nodiscard]] Topology overlap_machine();

/// A set of 2 to 4 tasks with jobs of 1 to 3 steps, some with copies from the machine's first device.
[[nodiscard]] TaskSet random_overlap_set(Random& random, const Topology& machine);

/// A set of 1 to 3 tasks on any machine, with short copies and kernels of every kind, and every field of a set and its
/// tasks drawn that jobs which overlap may have; the same for the same seed.
[[nodiscard]] TaskSet set_of_every_field(const Topology& machine, std::uint64_t seed);

/// The set with all periods and deadlines stretched alike.
[[nodiscard]] TaskSet stretched(TaskSet set, double factor);

/// The set on a machine with the same vertices and links.
[[nodiscard]] TaskSet on_machine(TaskSet set, const Topology& machine);

}  // namespace tutti::internal::test
