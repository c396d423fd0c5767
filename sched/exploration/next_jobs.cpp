#include "sched/exploration/next_jobs.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace tutti::internal {

HalfNs NextJobs::find_candidates(const GraphState& state, const FinishedJobs& finished, std::int64_t& visits) {
  candidates_.clear();
  HalfNs soonest = std::numeric_limits<HalfNs>::max();
  std::optional<std::uint32_t> certain;
  visits += 1 + state.words;
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
  return std::max(state.until, soonest);
}

std::span<const NextJob> NextJobs::of(const GraphState& state, const FinishedJobs& finished, std::int64_t& visits) {
  const HalfNs latest_start = find_candidates(state, finished, visits);
  next_.clear();
  HalfNs higher_released = std::numeric_limits<HalfNs>::max();  // some job of higher priority is surely released then
  for (const std::uint32_t position : candidates_) {
    const SequencedJob& job = jobs_[position];
    const HalfNs from = std::max(state.from, job.earliest);
    const HalfNs until = std::min(latest_start, higher_released - 1);
    higher_released = std::min(higher_released, job.latest);
    if (from <= until) next_.push_back({position, from, until});
  }
  return next_;
}

}  // namespace tutti::internal
