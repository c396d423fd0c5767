#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/base/step_budget.hpp"
#include "sched/exploration/job_set.hpp"
#include "sched/tasks/executed_job.hpp"

namespace tutti::internal {

/// Range of response times; both ends are reached, or approached arbitrarily closely, unless the exploration says that
/// they are bounds.
struct ResponseRange {
  Duration best{};
  Duration worst{};

  friend bool operator==(const ResponseRange&, const ResponseRange&) = default;
};

/// Result of exploring all schedules of a job set, or of periodic tasks.
struct Exploration {
  Answer answer = Answer::Unknown;
  std::string reason;                    ///< with Unknown: why, one sentence
  std::vector<ResponseRange> responses;  ///< with Schedulable: [n] of each job of the set, or of each task
  bool exact = true;                     ///< with Schedulable: false where responses lie in these ranges
  std::size_t jobs = 0;                  ///< number of jobs in the schedules that were followed
  bool settled = true;                   ///< with Schedulable: in every schedule these were the first jobs to arrive
  std::uint64_t states = 0;
  /// With NotSchedulable: a run in the order of execution, its last job late. Where it is too long to keep, that job
  /// alone.
  std::vector<ExecutedJob> late_run;
};

/// Budget of an exploration, in visits to a job from a state; once it is spent, the answer is Unknown.
struct ExplorationLimits {
  std::int64_t visits = 20 * kVisitsPerWalk;
  /// After so many of them the orders of jobs are left out of account; where that does not decide, all are spent.
  std::int64_t first_visits = kVisitsPerWalk;
  std::int64_t reduced_visits = kVisitsPerWalk;  ///< without orders, twice; 0: never without
  std::size_t jobs = 1'000'000;                  ///< of a hyperperiod, and before the last offset
};

/// Whether every job of a set meets its deadline in every schedule of a non-preemptive machine that never idles while a
/// job is ready and always takes the first in priority: for all releases and costs inside their ranges, in dense time.
///
/// Where every release and cost is fixed there is one schedule, and a plain simulation decides. Where there are too
/// many schedules, jobs that run next to each other in any order are followed together, with bounds for each, and runs
/// in which a bound is above a deadline are played: Schedulable stays a proof, NotSchedulable a run that happens.
/// @exact  also the responses, unless `Exploration::exact` is false, and `late_run` is a schedule that happens; in
/// dense
///         time: where a tool that counts in whole ns lets a job start at most at t - 1, here it starts at any time
///         before t.
/// @source [NB17], [RGNN23]
[[nodiscard]] Exploration explore(std::span<const JobTiming> jobs, const ExplorationLimits& limits = {});

/// Explores all jobs of strictly periodic tasks with offsets, release jitter up to J and costs from the best case to C,
/// for all time: until no state is new at the end of a hyperperiod after the last offset.
/// Under `cw_edf` there is one schedule, the time table.
/// @pre  jitter <= period for each task, so that its jobs become ready in their order; any jitter under `cw_edf`.
[[nodiscard]] Exploration explore(std::span<const TaskTiming> tasks, Policy policy,
                                  const ExplorationLimits& limits = {});

}  // namespace tutti::internal
