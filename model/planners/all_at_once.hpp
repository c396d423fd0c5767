#pragma once
#include "model/batch_simulation.hpp"
#include "model/effort.hpp"

namespace tutti {

/// Every chain starts at 0 and shares what is there: what a program does that just enqueues everything.
void plan_all_at_once(BatchSimulation& loaded, Effort);

}  // namespace tutti
