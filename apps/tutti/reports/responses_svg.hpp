#pragma once
#include <span>
#include <string>

#include "apps/tutti/formats/metrics_text.hpp"

namespace tutti::internal {

/// A picture of the response times of a run: a histogram for each task, beside the bound and the deadline.
/// @param tasks, summaries  [tasks]
[[nodiscard]] std::string responses_svg(std::span<const MeasuredTask> tasks, std::span<const JobSummary> summaries);

}  // namespace tutti::internal
