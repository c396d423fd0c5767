#pragma once
#include <span>
#include <vector>

#include "model/batch/batch_simulation.hpp"

namespace tutti::internal::test {

/// What the slow simulation says of a batch.
struct SlowRun {
  double latency = 0;
  std::vector<StreamTimes> times;  ///< the gates are left at 0
};

/// A batch run forward as the contract words it, with every step spelled out: all capacities, all streams, no caches.
/// @param gates  [streams] ns without the set-up of the batch; of merged streams the first one's counts.
[[nodiscard]] SlowRun slow_forward(const Topology& machine, Basis basis, const Batch& batch, RateRule rule,
                                   std::span<const double> gates);

}  // namespace tutti::internal::test
