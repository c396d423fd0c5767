#pragma once
#include <memory>
#include <span>

#include "runtime/dispatch/dispatcher.hpp"

namespace tutti::internal {

/// Prepares a run whose jobs overlap: each copy, kernel and host step is started by itself, as an `OperationScheduler`
/// decides, beside those of other jobs. Host steps are done by a thread for each resource that they hold.
///
/// Operations are compared with their longest times, jobs with the bounds of their responses; a budget is looked at
/// between two regions. A job that cannot go on, or is aborted, ends with what is under way of it.
/// @param jobs  [tasks] number of jobs to release
/// @pre the set was admitted with overlap.
/// @errors as `run_tasks`.
[[nodiscard]] Expected<std::unique_ptr<PreparedRun>> prepare_overlapped_run(Executor& executor,
                                                                            const AdmittedTaskSet& admitted,
                                                                            std::span<TaskProgram* const> programs,
                                                                            std::span<const std::uint64_t> jobs,
                                                                            const RunOptions& options);

/// The same for the jobs of a scenario, whether the set keeps its deadlines or not. There are no bounds.
/// @param jobs  [tasks] number of jobs of the scenario
/// @pre the set is planned with overlap.
[[nodiscard]] Expected<std::unique_ptr<PreparedRun>> prepare_overlapped_run(
    Executor& executor, const PlannedTaskSet& planned, std::span<TaskProgram* const> programs,
    std::span<const std::uint64_t> jobs, const Scenario& scenario, const RunOptions& options);

/// The same for a set whose tasks come and go on request.
/// @param jobs  [tasks] the most that there are
/// @pre the jobs of the set overlap, and arrivals end at a time. What is passed by reference outlives the run.
[[nodiscard]] Expected<std::unique_ptr<PreparedRun>> prepare_changing_overlapped_run(
    Executor& executor, ChangingTaskSet& set, std::span<TaskProgram* const> programs,
    std::span<const std::uint64_t> jobs, ChangeRequests& requests, const RunOptions& options);

}  // namespace tutti::internal
