#pragma once
#include <vector>

#include "runtime/dispatch/dispatcher.hpp"
#include "sched/admission/known_bounds.hpp"
#include "sched/chains/chain_measurement.hpp"

namespace tutti::internal {

/// What a run kept of the latencies of its chains.
/// @param bounds  [chains] on their latencies, where they are known; empty where nothing is guaranteed
/// @return [chains] of the set
[[nodiscard]] std::vector<ChainLatencies> measure_chains(const TaskSet& set, KnownBounds bounds,
                                                         const RunRecord& record);

}  // namespace tutti::internal
