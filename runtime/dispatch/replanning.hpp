#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/spare_machines.hpp"

namespace tutti::internal {

/// Prepares the run of a partition that plans again where it loses a GPU.
///
/// Tasks that use the GPU end. The others are admitted anew, as one set whose jobs run one at a time, and go on from
/// there to the end of the run, on a machine without that GPU: admission counts from that instant, and so do their
/// offsets. Tasks that are not admitted do not go on. Jobs that were ready or under way at the loss have ended with it,
/// and between the loss and the new start none arrive.
///
/// The record is one: times are from the start of the run, indices of a task's jobs count on, and so does the journal.
/// Its `fatal` error is that of the first loss. All happens in the thread of the run, so other partitions run on.
///
/// @param admitted   of the partition; it has one
/// @param programs   [tasks] they bind their buffers again
/// @param jobs       [tasks] number of jobs to release in all
/// @param partition  by which the spare machines know it
/// @errors as `run_tasks`.
[[nodiscard]] Expected<std::unique_ptr<PreparedRun>> prepare_replanned_run(
    Executor& executor, AdmittedTaskSet admitted, std::vector<TaskProgram*> programs, std::vector<std::uint64_t> jobs,
    const RunOptions& options, SpareMachines& spares, std::size_t partition);

/// A sentence on what came of a partition that has lost GPUs.
[[nodiscard]] std::string text_of(const Replanning& replanning, const TaskSet& tasks, const Topology& machine);

}  // namespace tutti::internal
