#pragma once
#include "model/batch_simulation.hpp"
#include "model/effort.hpp"

namespace tutti {

/// A local search over the gates, one a chain: from the best of the other plans, gates of one or two chains move at
/// random, and a plan stays where it is no worse. Short copies come to wait while long ones fill the machine.
///
/// What is best depends on the bandwidths that were loaded:
///  - Guaranteed: the latest finish (`BatchBound`), which becomes a Wcet. It is never later than that of another planner.
///    `completion_aligned`, `all_at_once` and `time_division` are where the search starts. `bandwidth_allocation`, whose
///    rate rule is another, need not be: weighted max-min gives each transfer at least its fixed share, so all at once
///    is bounded by no more.
///  - Nominal: the predicted length; never longer than the three. A real machine's rates vary, and a gate does not wait
///    for the transfer that was to be over by then. So a plan is judged by the mean of two lengths: as predicted, and on
///    a machine that is faster by its spread, where late gates are later than they need be. Fixed shares are another
///    machine here: a measured table, which they ignore, may be slower.
///
/// Where two plans are as good, the one whose gates open earlier stays. The search draws from a seeded generator and
/// ends when so many events have been simulated, so a batch has the same plan everywhere.
///
/// @heuristic
void plan_gate_search(BatchSimulation& loaded, Effort effort);

}  // namespace tutti
