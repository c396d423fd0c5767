#pragma once
#include "runtime/trace/journal_format.hpp"
#include "sched/admission/admission.hpp"

namespace tutti::internal {

/// The machine of a set, and what each stream of its jobs does by its plan, as a journal keeps them: streams in the
/// order in which a run hands their times over.
[[nodiscard]] JournalPlan journal_plan(const PlannedTaskSet& planned);

/// A batch with its plan.
struct PlannedStreams {
  const Batch* batch = nullptr;
  const Timeline* timeline = nullptr;
  const LatestFinish* latest = nullptr;  ///< null: not known
};

/// The same of batches that no task set has: each stands for a task.
/// @pre they are of this machine
[[nodiscard]] JournalPlan journal_plan(const Topology& machine, std::span<const PlannedStreams> batches);

/// Length of a job of a task by the plans of its batches, from its start to its finish; nothing where jobs overlap, or
/// where its Wcet alone is known.
[[nodiscard]] std::optional<Duration> predicted_length(const PlannedTaskSet& planned, TaskId task);

/// Position of each stream of a chunk in the batch that was cut: the first chunks leave out kernels without a transfer.
[[nodiscard]] std::vector<std::uint32_t> places_in(const Batch& whole, const Batch& chunk);

}  // namespace tutti::internal
