#pragma once
#include <vector>

#include "apps/lab/benches/verification.hpp"
#include "apps/tutti/formats/recording.hpp"

namespace tutti::internal {

/// Passes on one run of each batch, predicted beside measured, one after the other: the run whose length is nearest to
/// the median. Each batch is a task with one job, whose deadline is the latest finish of its plan.
/// @param results    [batches]
/// @param simulated  on a simulated machine
void record_verification(const Topology& machine, const std::vector<VerifiedBatch>& batches,
                         const std::vector<Verification>& results, bool simulated, RecordingSink& sink);

}  // namespace tutti::internal
