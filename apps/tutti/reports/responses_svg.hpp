#pragma once
#include <span>
#include <string>
#include <vector>

#include "apps/tutti/formats/metrics_text.hpp"

namespace tutti::internal {

/// A picture of the response times of a run: a histogram for each task, beside the bound and the deadline.
/// @param tasks, summaries  [tasks]
/// @param exact  [tasks] the responses; empty where the run kept no jobs: the histogram of the summary has them,
/// rounded
[[nodiscard]] std::string responses_svg(std::span<const MeasuredTask> tasks, std::span<const JobSummary> summaries,
                                        std::span<const std::vector<Duration>> exact);

}  // namespace tutti::internal
