#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/step_budget.hpp"
#include "sched/exploration/job_set.hpp"
#include "sched/tasks/executed_job.hpp"

namespace tutti {

/// From a job's arrival to its finish; both ends are reached, or come arbitrarily near.
struct ResponseRange {
  Duration best{};
  Duration worst{};

  friend bool operator==(const ResponseRange&, const ResponseRange&) = default;
};

/// What all schedules of a job set, or of periodic tasks, come to.
struct Exploration {
  Answer answer = Answer::Unknown;
  std::string reason;                    ///< with Unknown: why, one sentence
  std::vector<ResponseRange> responses;  ///< with Schedulable: [n] of each job of the set, or of each task
  std::size_t jobs = 0;                  ///< how many jobs a schedule was followed for
  bool settled = true;                   ///< with Schedulable: those were the first to arrive, in every schedule
  std::uint64_t states = 0;
  /// With NotSchedulable: a run in the order of execution, its last job late. Where it is too long to keep, that job
  /// alone.
  std::vector<ExecutedJob> late_run;
};

/// What an exploration may cost, in visits to a job from a state, before it ends with Unknown.
struct ExplorationLimits {
  std::int64_t visits = 20 * kVisitsPerWalk;
  std::size_t jobs = 1'000'000;  ///< of a hyperperiod, and before the last offset
};

/// Whether every job of a set meets its deadline in every schedule of a non-preemptive machine that never idles while a
/// job is ready and always takes the first in priority: for all releases and costs inside their ranges, in dense time.
///
/// Where no job has a choice of release or cost there is one schedule, and a plain simulation tells.
/// @exact  also the responses, and `late_run` is a schedule that happens; in dense time: where a tool that counts in
///         whole ns lets a job start at most at t - 1, here it starts at any time before t.
/// @source [NB17]
[[nodiscard]] Exploration explore(std::span<const JobTiming> jobs, const ExplorationLimits& limits = {});

/// The same for all jobs of strictly periodic tasks with offsets, release jitter up to J and costs from the best case
/// to C, for all time: until nothing is new at the end of a hyperperiod behind the last offset.
/// @pre  jitter <= period for each task, so that its jobs become ready in their order.
[[nodiscard]] Exploration explore(std::span<const TaskTiming> tasks, Policy policy,
                                  const ExplorationLimits& limits = {});

}  // namespace tutti
