#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "model/batch/safe_bound.hpp"
#include "model/planners/planner.hpp"
#include "sched/admission/admission.hpp"

namespace tutti::internal {

/// A planned batch as text: a row a stream, with a bar for its copy and its kernel.
/// @param columns  of the terminal, which the bars fill; nothing: bars of 40 columns
[[nodiscard]] std::string timeline_text(const Planner& planner, const Topology& machine, const Timeline& timeline,
                                        const LatestFinish& latest, std::optional<std::size_t> columns);

/// One job of each task by its plans, on one axis: a row a stream or host step, in the order of the steps; empty where
/// jobs overlap or no task has a batch. More rows than fit on a screen are left out, and counted.
[[nodiscard]] std::string jobs_timeline_text(const PlannedTaskSet& planned, std::optional<std::size_t> columns);

}  // namespace tutti::internal
