#pragma once
#include <span>
#include <string>
#include <vector>

#include "apps/tutti/reports/report.hpp"
#include "apps/tutti/reports/run_output.hpp"
#include "sched/admission/known_bounds.hpp"
#include "sched/chains/chain_measurement.hpp"

namespace tutti::internal {

/// [chains] bounds on their latencies, where they are known; empty where nothing is guaranteed.
using ChainBounds = KnownBounds;

/// The chains of `check`.
[[nodiscard]] std::vector<ChainOutput> chains_output(const TaskSet& set, const ChainBounds& bounds);
[[nodiscard]] std::string chains_text(const TaskSet& set, const ChainBounds& bounds);

/// The chains of `run`, measured values beside the bounds.
/// @param measured  [chains]
[[nodiscard]] std::vector<MeasuredChainOutput> measured_chains_output(const TaskSet& set, const ChainBounds& bounds,
                                                                      std::span<const ChainLatencies> measured);
/// Empty where the set has no chains.
[[nodiscard]] std::string measured_chains_text(const TaskSet& set, const ChainBounds& bounds,
                                               std::span<const ChainLatencies> measured);

/// A sentence about each chain that was over its bound or its deadline.
[[nodiscard]] std::vector<std::string> broken_chains(const TaskSet& set, const ChainBounds& bounds,
                                                     std::span<const ChainLatencies> measured);

}  // namespace tutti::internal
