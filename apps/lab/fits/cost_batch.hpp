#pragma once
#include <cstddef>

#include "apps/lab/fits/measurement.hpp"
#include "model/batch/batch.hpp"

namespace tutti::internal {

/// The batch of a sample, as it was run: first the timed queue, then large copies that keep other engines busy.
struct CostBatch {
  Batch batch;
  std::size_t timed = 0;  ///< number of streams of the queue
};

/// @errors InvalidInput: the machine has no such GPU, no route for it, no processor for host work.
[[nodiscard]] Expected<CostBatch> cost_batch(const Topology& machine, const CostSample& sample);

}  // namespace tutti::internal
