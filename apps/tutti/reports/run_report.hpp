#pragma once
#include <span>
#include <string>

#include "apps/tutti/reports/report.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/partition_machines.hpp"
#include "sched/admission/known_bounds.hpp"

namespace tutti::internal {

/// [tasks] guaranteed worst-case responses, where a test gives them; empty where nothing is guaranteed.
using WorstResponses = KnownBounds;

/// The report of `run`.
[[nodiscard]] Json run_json(const TaskSet& set, const WorstResponses& bounds, const RunRecord& record,
                            const RunPlace& place);
[[nodiscard]] std::string run_text(const TaskSet& set, const WorstResponses& bounds, const RunRecord& record,
                                   const RunPlace& place);

/// For each task with steps, whether the CPU or the GPUs bound it: `bound_by[]` of the JSON, and a table; empty where
/// no job has finished.
[[nodiscard]] Json bound_by_json(const TaskSet& set, const RunRecord& record);
[[nodiscard]] std::string bound_by_text(const TaskSet& set, const RunRecord& record);

}  // namespace tutti::internal
