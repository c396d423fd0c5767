#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "model/base/step_budget.hpp"
#include "sched/exploration/job_sequence.hpp"
#include "sched/exploration/latest_finishes.hpp"

namespace tutti::internal {

/// When a job can finish.
struct FinishTimes {
  HalfNs first = std::numeric_limits<HalfNs>::max();
  HalfNs last = -1;

  void include(HalfNs from, HalfNs to) {
    first = first < from ? first : from;
    last = last > to ? last : to;
  }
};

/// A job in one run of the machine.
struct SearchedRun {
  std::size_t position = 0;                   ///< in the sequence
  HalfNs release = 0, start = 0, finish = 0;  ///< as of an `ExecutedJob`
};

enum class SearchEnd : std::uint8_t {
  AllInTime,    ///< every job of every schedule
  Late,         ///< some job of some schedule is late
  OutOfBudget,  ///< too many states, and no job was late so far
  OutOfReach,   ///< times grew too large, and no job was late so far
  MaybeLate,    ///< a bound is above a deadline: only where bounds take the place of schedules
};

/// Result of a search over all schedules of a job sequence.
struct SearchResult {
  SearchEnd end = SearchEnd::AllInTime;
  std::vector<FinishTimes> finishes;  ///< [size of the sequence] of the jobs that were reached
  bool exact = true;                  ///< whether both ends of these ranges are reached; else finishes lie in them
  std::size_t depth = 0;              ///< number of jobs in the schedules that were followed
  bool settled = true;                ///< nothing but the first `depth` jobs of the sequence ran by then
  std::uint64_t states = 0;
  std::vector<SearchedRun> late_run;  ///< with Late: one schedule up to the job that is late
};

/// Simulates the one schedule of jobs with fixed releases and costs. For periodic tasks it ends once the backlog at the
/// end of a hyperperiod is equal to an earlier one.
/// @pre  the sequence is fixed and in reach.
[[nodiscard]] SearchResult simulate(JobSequence& jobs, StepBudget budget);

/// Explores all schedules breadth-first: after k jobs there is one state for each set of finished jobs and each
/// interval of times at which the machine can become free then. For periodic tasks it ends once no state at the end of
/// a hyperperiod is new.
/// @pre  the sequence is in reach.
/// @source [NB17] schedule-abstraction graph: eligibility (its equations 1 to 4), merging of states whose intervals
///         touch.
[[nodiscard]] SearchResult search_graph(JobSequence& jobs, StepBudget budget);

/// Result of a search that bounds the finishes of many jobs at once.
struct ReducedSearch {
  SearchResult result;                ///< with AllInTime: the finishes lie in these ranges
  std::vector<LateSuspect> suspects;  ///< jobs that could not be shown to be in time, and when they may be late
};

/// Explores all schedules, and follows jobs that run next in every schedule by one edge in place of one for each order,
/// where the bounds of their finishes hold their deadlines.
/// @sufficient
/// @source [RGNN23] partial-order reduction
[[nodiscard]] ReducedSearch search_reduced(JobSequence& jobs, StepBudget& budget);

/// Bounds the finishes of all jobs: the reduction to one edge. For periodic tasks it looks at one hyperperiod in the
/// middle of infinitely many, in which no job has more before it than there.
/// @sufficient
[[nodiscard]] ReducedSearch bound_all(JobSequence& jobs, StepBudget& budget);

/// Plays some runs in which these jobs may be late.
/// @return  one that happens, up to the late job; else empty.
[[nodiscard]] std::vector<SearchedRun> play_suspects(JobSequence& jobs, std::span<const LateSuspect> suspects);

}  // namespace tutti::internal
