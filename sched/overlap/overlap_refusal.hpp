#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sched/analyses/analysis.hpp"
#include "sched/overlap/operations.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// What jobs demand of an engine or GPU, where nothing else is there and nothing costs time.
///
/// A job has a window for its work there: from when it can come to it, after the least times of what goes before, until
/// it must leave, before the least times of what follows. Whatever the order, and with whatever preemption, the work of
/// all windows inside an interval is done inside the interval.
///
/// Behind a region: all jobs but one come right after a region of that one has begun, which no order can foresee unless
/// arrivals are known. The region is not preempted, so an interval has time for it, and for the work of all jobs that
/// come and must leave within; windows open as jobs arrive, since a job that is known may be waited for.
/// @source [JSM91], whose condition for one processor this is, for each engine and GPU
struct UnitDemand {
  /// [tasks] C: the work of a job there; first window: D - J. Regions: the longest one there that blocks, or 0.
  std::vector<TaskTiming> timings;
  /// [tasks] when the first job arrives, and when it is ready, so that the windows of all tasks open together. With
  /// known arrivals these are the offsets, and the windows open at time 0.
  std::vector<Duration> arrival, ready;
  std::vector<bool> at_once;  ///< [tasks] whether a job can begin its longest region there as it arrives; behind a
                              ///< region alone
};

/// What proves that a job is late whatever the order, without counting any cost.
struct OverlapRefusal {
  std::string reason;                ///< one sentence
  std::optional<TaskId> late_alone;  ///< a task whose jobs can be late with the machine for themselves; or
  std::size_t unit = 0;              ///< position in `OperationSet::units` of what is in demand for too much,
  std::optional<UnitDemand> demand;  ///< for what, and
  std::optional<Witness> witness;  ///< the interval in which that is more than there is time, where it is within reach
};

/// Jobs that are late alone; and where there are none, engines and GPUs that are in demand for more than all the time.
/// Work on cpus may run side by side.
[[nodiscard]] std::vector<OverlapRefusal> refusals_by_load(const TaskSet& set, const OperationSet& operations);
/// Engines and GPUs that are in demand for more than there is time in some interval; of those that are not, such as are
/// behind a region that has just begun.
/// @pre no job is late with the machine for itself
[[nodiscard]] std::vector<OverlapRefusal> refusals_by_demand(const TaskSet& set, const OperationSet& operations);

/// Whether `refusals_by_load`, or `refusals_by_demand`, are any; takes less time.
[[nodiscard]] bool is_overloaded(const TaskSet& set, const OperationSet& operations);
[[nodiscard]] bool is_overdemanded(const TaskSet& set, const OperationSet& operations);

}  // namespace tutti::internal
