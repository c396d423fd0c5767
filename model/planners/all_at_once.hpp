#pragma once
#include "model/batch/batch_simulation.hpp"
#include "model/planners/effort.hpp"

namespace tutti::internal {

/// Every queue starts at 0 and shares the bandwidth: the behaviour of a program that just enqueues everything.
void plan_all_at_once(BatchSimulation& loaded, Effort);

}  // namespace tutti::internal
