#pragma once
#include <cstddef>

#include "model/batch.hpp"
#include "model/measurement.hpp"

namespace tutti {

/// The batch of a sample, as it was run: its chain is what was timed; large copies behind it keep other engines busy.
struct CostBatch {
  Batch batch;
  std::size_t timed = 0;  ///< the first so many streams are the chain
};

/// @errors InvalidInput: the machine has no such GPU, no way for it, no processor for host work.
[[nodiscard]] Expected<CostBatch> cost_batch(const Topology& machine, const CostSample& sample);

}  // namespace tutti
