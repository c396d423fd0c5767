#pragma once
#include "model/batch/batch_simulation.hpp"
#include "model/planners/effort.hpp"

namespace tutti::internal {

/// All queues complete at the same instant, each started as late as that allows: the timeline is built backward from
/// the common completion, so that late in the batch, when every stream is active, no bandwidth is left over.
///
/// A copy through a memory holds an engine of two GPUs, so it waits for the other copies of both, and with it whatever
/// is behind it in its queue: nothing here orders queues by that, and gates that all lead to one end let both wait. In
/// the exchange of a domain decomposition on four GPUs that is 76.6 ms where `gate_search`, which moves gates of whole
/// queues apart, finds 53.9; `best` takes that one.
///
/// Where two queues want one GPU, one of them may complete earlier; the gates then come from the backward walk and the
/// times from running them forward, since an engine queue that need not wait any more may do its work earlier than
/// mirrored.
///
/// Where the rates of the machine vary (`BatchSimulation::spread`: of nominal rates only), gates open earlier than
/// that, and queues may complete earlier. The first of these that applies:
///  1. All gates open at once, where the batch is then shorter than aligned.
///  2. Gates open earlier by twice the spread of the batch's length (its set-up left out): a stream may be slower than
///     predicted, and others faster. This applies unless the batch becomes longer by more than a quarter of the spread,
///     or longer than with all gates open at once.
///  3. Gates open earlier by the spread of their own time: a run that is faster throughout does not wait for them. This
///     applies unless the batch becomes longer than with all gates open at once.
///  4. All gates open at once.
///
/// The shares were found by simulating `bench methods` on a machine of four H200s whose rates were varied by 3.5 %.
///
/// @source [VMS14] Algorithm 1 with its special cases.
/// @heuristic it is no optimum in general; the published evaluation compares it with the other planners.
void plan_completion_aligned(BatchSimulation& loaded, Effort);

}  // namespace tutti::internal
