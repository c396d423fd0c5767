#pragma once
#include "model/batch_simulation.hpp"

namespace tutti {

/// All chains complete at the same instant (but for the spread, below), each started as late as that allows: the
/// timeline is built backward from the common completion, so that late in the batch, when every stream is active, no
/// bandwidth is left over.
///
/// Where the rates of the machine vary from run to run (`Topology::spread`), gates open earlier: by twice the spread of
/// the batch's length, as a stream may be slower than predicted and the others faster. Where the batch would be longer
/// for it (by more than a quarter of the spread), they open earlier by the spread of their own time, so that a run that
/// is faster than predicted does not wait for them; where it would be shorter with all of them open at once, they are.
///
/// Where two chains want one GPU, one of them may complete earlier; the gates then come from the backward walk and the
/// times from running them forward, since a chain that need not wait any more may do its work earlier than mirrored.
///
/// @source [VMS14] Algorithm 1 with its special cases.
/// @heuristic it is no optimum in general; the published evaluation compares it with the other planners.
void plan_completion_aligned(BatchSimulation& loaded);

}  // namespace tutti
