#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sched/exploration/job_sequence.hpp"
#include "sched/exploration/state_level.hpp"

namespace tutti::internal {

/// A job that can be the next one in a state, and when it starts then.
struct NextJob {
  std::uint32_t position = 0;
  HalfNs from = 0, until = 0;
};

/// Finds the jobs that can be next in a state of the graph.
///
/// The next job starts no later than when the machine is free and some job has surely been released. Among the jobs
/// that are surely released before the machine is free, only the first in priority can be next; jobs before it in
/// priority that may be released can be next as well.
/// @source [NB17] equations 1 to 4
class NextJobs {
 public:
  explicit NextJobs(JobSequence& jobs) : jobs_(jobs) {}

  /// @param visits  those of this search are added.
  /// @return  in the order of priority; valid until the next call, and meaningless once the sequence is out of reach.
  std::span<const NextJob> of(const GraphState& state, const FinishedJobs& finished, std::int64_t& visits);

 private:
  /// @return  when the next job starts at the latest.
  HalfNs find_candidates(const GraphState& state, const FinishedJobs& finished, std::int64_t& visits);

  JobSequence& jobs_;
  std::vector<std::uint32_t> candidates_;
  std::vector<NextJob> next_;
};

}  // namespace tutti::internal
