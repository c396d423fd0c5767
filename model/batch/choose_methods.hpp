#pragma once
#include <set>

#include "model/batch/batch.hpp"

namespace tutti::internal {

/// The batch with a method for each copy between a memory and a GPU that asks for none, where another one than a copy
/// engine makes the batch shorter; copies of up to 1 KiB to a GPU stay with an engine. Only methods with costs of their
/// own in the machine file count, so a machine that was not calibrated for them copies by engines.
///
/// @param basis  the costs that decide: the usual ones for the best average, the guaranteed ones for the best worst
/// case
/// Where a GPU leads jobs, commands are enqueued before their data is there: no bytes are read then.
/// @param busy   GPUs that run kernels of others, behind which a copy by a kernel would wait
/// @heuristic    the better of engines for all copies and the fastest method for each alone; then one group of copies
///               with the same ends and size after the other
[[nodiscard]] Batch choose_methods(Batch batch, Basis basis, const std::set<VertexId>& busy = {});

}  // namespace tutti::internal
