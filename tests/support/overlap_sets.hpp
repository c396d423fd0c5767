#pragma once
#include "sched/tasks/task.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::test {

/// Three GPUs, one with a single copy engine, behind a memory that they fill, with weights and staged copies; no costs.
[[nodiscard]] Topology overlap_machine();

/// A set of 2 to 4 tasks with jobs of 1 to 3 steps, some with copies from the machine's first device.
[[nodiscard]] TaskSet random_overlap_set(Random& random, const Topology& machine);

}  // namespace tutti::internal::test
