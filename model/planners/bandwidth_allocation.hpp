#pragma once
#include "model/batch/batch_simulation.hpp"
#include "model/planners/effort.hpp"

namespace tutti::internal {

/// Every queue starts at 0 and each transfer keeps, for its whole length, the smallest share on its route; bandwidth
/// that another stream leaves unused stays unused. Every stream of the batch counts on each capacity that it crosses,
/// also those that take turns on an engine.
///
/// @source [VMS14] section 2.4.
void plan_bandwidth_allocation(BatchSimulation& loaded, Effort);

}  // namespace tutti::internal
