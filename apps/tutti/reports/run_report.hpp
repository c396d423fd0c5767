#pragma once
#include <span>
#include <string>

#include "apps/tutti/reports/report.hpp"
#include "apps/tutti/reports/run_output.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/partition_machines.hpp"
#include "sched/admission/known_bounds.hpp"

namespace tutti::internal {

/// [tasks] guaranteed worst-case responses, where a test gives them; empty where nothing is guaranteed.
using WorstResponses = KnownBounds;

/// The report of `run`, but for chains, self-test, faults and what bounds tasks.
[[nodiscard]] RunOutput run_output(const TaskSet& set, const WorstResponses& bounds, const RunRecord& record,
                                   const RunPlace& place);
[[nodiscard]] std::string run_text(const TaskSet& set, const WorstResponses& bounds, const RunRecord& record,
                                   const RunPlace& place);

/// For each task with steps, whether the CPU or the GPUs bound it; empty where no job has finished.
[[nodiscard]] std::vector<BoundByOutput> bound_by_output(const TaskSet& set, const RunRecord& record);
[[nodiscard]] std::string bound_by_text(const TaskSet& set, const RunRecord& record);

}  // namespace tutti::internal
