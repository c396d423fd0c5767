#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "model/base/step_budget.hpp"
#include "sched/exploration/job_sequence.hpp"

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
};

/// Result of a search over all schedules of a job sequence.
struct SearchResult {
  SearchEnd end = SearchEnd::AllInTime;
  std::vector<FinishTimes> finishes;  ///< [size of the sequence] of the jobs that were reached
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

}  // namespace tutti::internal
