#pragma once
#include <vector>

#include "apps/lab/measuring/measuring_costs.hpp"

namespace tutti::internal {

/// The samples of what a batch takes that a GPU leads, without their times: short copies of either direction, one and
/// several, and kernels, on each GPU; alone, and in turn with other lanes.
[[nodiscard]] std::vector<CostSample> plan_led_costs(const Topology& machine, const CostOptions& options);

/// Measures samples as runs that a GPU leads, one after the other, each a job of one batch again and again: from when a
/// job could start until the conductor has seen its end. The first samples have most jobs: they show rare delays.
/// @return samples with their times, without those that are refused (staged copies, more lanes than there are); none
///         where this host's GPUs lead no runs, which is noted
/// @errors Machine: the buffers do not fit, a run failed. InvalidInput: interrupted.
[[nodiscard]] Expected<std::vector<CostSample>> measure_led_costs(Executor& executor, std::vector<CostSample> samples,
                                                                  const CostOptions& options);

/// Measures bursts of a conductor's visits: copies up and down of many tasks arrive at one instant, and their jobs
/// overlap. Adds nothing where this host's GPUs lead no such run.
/// @errors as `measure_led_costs`
[[nodiscard]] Expected<void> measure_bursts(Executor& executor, const CostOptions& options, CostMeasurements& into);

}  // namespace tutti::internal
