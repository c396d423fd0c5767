#pragma once
#include "model/batch/batch_simulation.hpp"
#include "model/planners/effort.hpp"

namespace tutti::internal {

/// One queue's transfers at a time at the full rate of their route; kernels overlap with the transfers of later
/// queues; longest kernel first, ties by the order of the file.
///
/// Optimal among the orders where no two queues' kernels share a GPU (Jackson's rule: longest tail first minimises the
/// makespan of one machine with delivery times); a heuristic elsewhere.
///
/// @source [VMS14] section 2.4; [Jac55].
void plan_time_division(BatchSimulation& loaded, Effort);

}  // namespace tutti::internal
