#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
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

  /// Finds those of a state; meaningless once the sequence is out of reach.
  /// @return  visits that this took.
  std::int64_t find(const GraphState& state, const FinishedJobs& finished) {
    from_ = state.from;
    candidates_.clear();
    HalfNs soonest = std::numeric_limits<HalfNs>::max();
    std::optional<std::uint32_t> certain;
    std::int64_t visits = 1 + state.words;
    for (std::size_t position = state.first; jobs_.has(position); position = finished.next_pending(position + 1)) {
      const SequencedJob& job = jobs_[position];
      if (job.earliest > std::max(state.until, soonest)) break;
      ++visits;
      soonest = std::min(soonest, job.latest);
      const auto at = static_cast<std::uint32_t>(position);
      if (job.latest > state.from) {
        candidates_.push_back(at);
      } else if (!certain || jobs_.before(at, *certain)) {
        certain = at;
      }
    }
    if (certain) {
      std::erase_if(candidates_, [&](std::uint32_t at) { return !jobs_.before(at, *certain); });
      candidates_.push_back(*certain);
    }
    std::ranges::sort(candidates_, [&](std::uint32_t a, std::uint32_t b) { return jobs_.before(a, b); });
    latest_start_ = std::max(state.until, soonest);
    return visits;
  }

  /// Visits those that were found, in the order of priority.
  /// @param visit  (NextJob) -> whether to go on
  /// @return  whether it went on to the end.
  template <class Visit>
  bool for_each(Visit visit) const {
    HalfNs higher_released = std::numeric_limits<HalfNs>::max();  // some job of higher priority is surely released then
    for (const std::uint32_t position : candidates_) {
      const SequencedJob& job = jobs_[position];
      const HalfNs from = std::max(from_, job.earliest);
      const HalfNs until = std::min(latest_start_, higher_released - 1);
      higher_released = std::min(higher_released, job.latest);
      if (from <= until && !visit(NextJob{position, from, until})) return false;
    }
    return true;
  }

 private:
  JobSequence& jobs_;
  HalfNs from_ = 0, latest_start_ = 0;
  std::vector<std::uint32_t> candidates_;
};

}  // namespace tutti::internal
