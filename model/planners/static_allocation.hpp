#pragma once
#include "model/batch/batch_simulation.hpp"
#include "model/planners/effort.hpp"

namespace tutti::internal {

/// Every queue starts at 0, and each transfer keeps a share that it has for ever: each capacity is split over all
/// transfers of the application that cross it, also over those of other batches and tasks. A batch that belongs to no
/// application runs as with `bandwidth_allocation`.
///
/// For comparison: a system without batches can give its tasks nothing better that holds whatever the others do.
///
/// @source [VMS14] section 5, the bandwidth allocation that its applications are compared with.
void plan_static_allocation(BatchSimulation& loaded, Effort);

}  // namespace tutti::internal
