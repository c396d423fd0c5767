#pragma once
#include "model/batch/batch.hpp"
#include "model/batch/batch_simulation.hpp"
#include "model/planners/effort.hpp"

namespace tutti::internal {

/// A local search over the gates, one an engine queue: from the best of the other plans, gates of one or two queues
/// move at random, and a plan stays where it is no worse. Short copies come to wait while long ones fill the machine.
///
/// The others are `all_at_once`, `completion_aligned` and `time_division`, whose transfers share the machine as those
/// of this planner do. `bandwidth_allocation` is left out: its transfers are held to fixed shares, which no gates can
/// do, so its figures are those of another machine. Weighted max-min gives every transfer at least its fixed share;
/// where the bound of a fixed share is the smaller one, that is what the bound overestimates.
///
/// The objective depends on the loaded bandwidths:
///  - Guaranteed: the latest finish (`BatchBound`), which becomes a Wcet; never later than that of the others.
///  - Nominal: the predicted length; never longer than that of the others. A real machine's rates vary, and a gate does
///    not wait for the transfer that was to be over by then. So plans are compared by the mean of two lengths: as
///    predicted, and on a machine that is faster by its spread (3.5 % at least), where late gates are later than they
///    need be.
///
/// Where two plans are as good, the one whose gates open at once stays. The search draws from a seeded generator and
/// ends when its budget of simulated events is spent, or half of what was left at the last gain, so a batch has the
/// same plan everywhere.
///
/// @heuristic
void plan_gate_search(BatchSimulation& loaded, Effort effort);

/// The plan of `completion_aligned`, unless the latest finish of `gate_search`'s is more than 0.5 % sooner.
///
/// Where no gates could be so much sooner, nothing is searched.
///
/// @pre guaranteed bandwidths are loaded; nominal ones: `plan_best_of_batch`.
/// @heuristic
void plan_best(BatchSimulation& loaded, Effort effort);

/// `plan_best` at the loaded bandwidths, whichever they are.
///
/// At nominal ones plans are judged by their latest finishes at guaranteed ones too, since a plan is promised by these.
/// There `gate_search` keeps to predicted lengths, and one of the plans that it starts from takes its place where that
/// plan's latest finish is more than 0.5 % sooner. So no plan of `completion_aligned`, `all_at_once`, `time_division`,
/// `gate_search` is promised sooner by more than 0.5 %.
///
/// It allocates memory for the bounds at every call.
///
/// @param batch  the loaded one
/// @heuristic
void plan_best_of_batch(BatchSimulation& loaded, const Batch& batch, Effort effort);

}  // namespace tutti::internal
