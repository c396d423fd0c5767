#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sched/overlap/local_deadlines.hpp"
#include "sched/overlap/overlap_refusal.hpp"

namespace tutti::internal {

/// Whether the jobs of a set keep their deadlines where stages of different jobs overlap, with reasons.
struct OverlapVerdict {
  Answer answer = Answer::Unknown;
  OperationSet operations;
  std::vector<double> utilization;          ///< [resources] beside any co-runners; rounded, for display only
  std::optional<LocalDeadlines> deadlines;  ///< with Schedulable: those that every resource keeps
  /// [tasks] from the arrival, where a test gives one
  std::vector<std::optional<Duration>> worst_responses;
  std::vector<std::string> reasons;      ///< why not; one sentence each; empty where schedulable
  std::vector<OverlapRefusal> refusals;  ///< with NotSchedulable, and only then: what proves it

  /// The resource with the largest utilization. @pre there is one
  [[nodiscard]] std::size_t bottleneck() const;
};

/// Decides a set whose operations overlap: each resource is a non-preemptive processor of its own, and each operation a
/// task of it with a local deadline. Device memory is not counted.
///
/// Not schedulable only where that is proven whatever the order and whatever the costs (`OverlapRefusal`). Where no
/// local deadlines are found for every engine by itself, some are joined (`Joining`).
/// @errors as `operations_of`
/// @sufficient
[[nodiscard]] Expected<OverlapVerdict> decide_overlapping(const TaskSet& set);

/// The answer of `decide_overlapping` alone, which takes less time.
[[nodiscard]] Answer answer_overlapping(const TaskSet& set);

/// Whether no job is late alone, and no resource in demand for more than all the time (`fits`) with every engine by
/// itself or some joined. No other set is helped by more pieces, which take no less time.
/// @necessary
[[nodiscard]] bool may_fit(const TaskSet& set);

/// The schedulable verdict for local deadlines that were found: they are tightened, and bound the responses. Operations
/// are held until their guards only where the bounds rest on that.
[[nodiscard]] OverlapVerdict with_deadlines(const TaskSet& set, OperationSet operations, const LocalDeadlines& found);

}  // namespace tutti::internal
