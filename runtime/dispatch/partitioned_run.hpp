#pragma once
#include <atomic>
#include <span>

#include "runtime/dispatch/dispatcher.hpp"

namespace tutti::internal {

/// Runs an admitted task set each of whose partitions has a machine for itself: an executor, and with it a backend, a
/// clock and a queue of ready jobs.
///
/// Each partition has a thread of its own. On real clocks all run at once; on virtual clocks one works at a time, and
/// times advance together (`TimeTurns`). Either way a partition runs as it would alone. Everything is prepared in the
/// caller's thread before the first job is released, and freed when all partitions have ended.
///
/// An interrupt ends all. A fault of the machine ends its partition, and the others run to their end: their guarantees
/// do not rest on the part that failed. Where the fault is a lost GPU and there are spare machines
/// (`RunOptions::spares`), the partition goes on with the tasks that do not need it: `prepare_replanned_run`.
///
/// @param executors  [partitions of the set] of which no two share a backend or a clock; all their clocks run by
///                   themselves, or none
/// @param programs   [tasks] a program is called in the thread of its task's partition; what it shares with those of
///                   other partitions, kernels included, must stand that
/// @return  the jobs of all, in the order in which they ended; times are from the start of their partition's run. The
///          `fatal` error is that of the first partition that has one.
/// @errors as the `run_tasks` of one partition; Machine: the host has no thread left.
[[nodiscard]] Expected<RunRecord> run_tasks(std::span<Executor* const> executors, const AdmittedTaskSet& admitted,
                                            std::span<TaskProgram* const> programs, const RunOptions& options);

/// Runs a scenario in the same way: each partition its own jobs of it.
/// @param scenario  its tasks are those of the set.
/// @param options   as there
/// @errors as above.
[[nodiscard]] Expected<RunRecord> run_scenario(std::span<Executor* const> executors, const PlannedTaskSet& planned,
                                               std::span<TaskProgram* const> programs, const Scenario& scenario,
                                               const RunOptions& options = {});

}  // namespace tutti::internal
