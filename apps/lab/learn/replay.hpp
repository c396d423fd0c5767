#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "apps/lab/learn/learned_task.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// Ends of copies and kernels as a model of the trace predicts them.
///
/// Each job starts when it did. Then an operation starts its usual gap behind what it waits for, in the order in which
/// operations are ready for their engine: one for each direction of a GPU's copies, one for its kernels. Kernels take
/// their usual time, and copies have the machine's rates for what is active. What is in no task is there when it was.
///
/// @param machine  as `learned_machine` names its vertices
/// @return [operations of the trace] ns; of those in no task their recorded end
[[nodiscard]] std::vector<std::int64_t> replayed_ends(const RecordedTrace& trace, std::span<const LearnedTask> tasks,
                                                      const Topology& machine);

}  // namespace tutti::internal
