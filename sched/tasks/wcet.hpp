#pragma once
#include <compare>
#include <optional>
#include <vector>

#include "model/batch/execution_plan.hpp"
#include "model/planners/planner.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// A worst-case execution time: a Duration that was made a bound in one visible place.
///
/// A plain Duration does not convert, so that no prediction slips into an analysis unnoticed.
class Wcet {
 public:
  constexpr explicit Wcet(Duration bound) : bound_(bound) {}
  [[nodiscard]] constexpr Duration bound() const { return bound_; }
  friend constexpr auto operator<=>(Wcet, Wcet) = default;

 private:
  Duration bound_;
};

/// Execution-time bound of a job, and the plans by which the job keeps it.
struct JobBound {
  Wcet wcet{Duration{0}};  ///< of a job without preemption: it pays the cost per job once
  /// Non-preemptive regions of the job: each chunk of a batch begins one, and host steps go with the chunk before them,
  /// or with the first. Each region pays the cost per job, so together they are longer than the Wcet. A declared Wcet
  /// is one region.
  std::vector<Duration> regions;
  Duration held_up{};  ///< the cost per job, which is part of the Wcet and of each region; 0 of a declared Wcet
  /// [batches of the task][chunks] at guaranteed bandwidths and worst kernel times, each with its latest finish, margin
  /// not included; one chunk where a batch is not cut.
  std::vector<std::vector<ExecutionPlan>> plans;
};

/// Whether other jobs may run between the regions of a job.
[[nodiscard]] bool runs_in_regions(const JobBound& bound, Preemption preemption);
/// Worst-case execution time of a job: the sum of its regions where it runs in regions.
[[nodiscard]] Wcet wcet_of(const JobBound& bound, Preemption preemption);

/// A batch's bound: its length x (1 + relative) + absolute, rounded up; saturates at the longest Duration.
[[nodiscard]] Wcet batch_wcet(Duration length, const Margin& margin);

/// The bound of one task's jobs: its declared Wcet as it is, or else the sum of its batches' bounds, set-up and margin
/// included, of what dispatching each of them costs, of its host steps, and of what a job with batches costs once.
///
/// A batch's bound is the latest finish of the plan for guaranteed bandwidths and worst kernel times: it holds for all
/// sizes, kernel and set-up times of at most those declared and bandwidths of at least those guaranteed.
///
/// @pre a task with batches comes with the machine that they were made for.
/// @param cut_above  largest chunk, in bytes of one stream; 0: batches are not cut
/// @param effort     of a planner that searches
[[nodiscard]] JobBound bound_job(const Task& task, const std::optional<Topology>& machine, const Planner& planner,
                                 Bytes cut_above = Bytes{0}, Effort effort = {});

}  // namespace tutti::internal
