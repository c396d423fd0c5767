#pragma once
#include <set>

#include "model/batch/batch.hpp"

namespace tutti::internal {

/// What a batch cannot have, since others need it.
struct HeldByOthers {
  std::set<VertexId> gpus = {};  ///< run kernels of others, behind which a copy by a kernel would wait
  bool host = false;             ///< no core is left for a thread that copies
};

/// The batch with a method for each copy between a memory and a GPU that asks for none, where another one than a copy
/// engine makes the batch shorter. All methods with costs of their own in the machine file are tried, so a machine that
/// was not calibrated for them copies by engines.
///
/// @param basis  the costs that decide: the usual ones for the best average, the guaranteed ones for the best worst
/// case
/// Where a GPU leads jobs, commands are enqueued before their data is there, and no thread of the host takes part:
/// nothing is carried by a command or copied by the host then.
/// @heuristic    the better of engines for all copies and the fastest method for each alone; then one group of copies
///               with the same ends and size after the other
[[nodiscard]] Batch choose_methods(Batch batch, Basis basis, const HeldByOthers& held = {});

}  // namespace tutti::internal
