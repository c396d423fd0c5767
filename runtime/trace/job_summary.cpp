#include "runtime/trace/job_summary.hpp"

#include <algorithm>
#include <numeric>

namespace tutti::internal {

void JobSummary::add(const JobEntry& job) noexcept {
  ++verdicts_[static_cast<std::size_t>(job.verdict)];
  overruns_ += job.overruns;
  overwritten_ += job.overwritten ? 1 : 0;
  reused_input_ += job.reused_input ? 1 : 0;
  if (job.start) lateness_.add(job.late);
  if (job.completed()) {
    responses_.add(job.response());
    worst_end_to_end_ = std::max(worst_end_to_end_, job.end_to_end());
    if (job.seen) worst_at_host_ = std::max(worst_at_host_, std::optional(job.response_at_host()));
  }
  if (job.broken) {
    ++causes_[static_cast<std::size_t>(job.broken->cause)];
    worst_excess_ = std::max(worst_excess_, job.broken->excess);
  }
}

void JobSummary::merge(const JobSummary& other) noexcept {
  for (std::size_t i = 0; i < kJobVerdicts; ++i) verdicts_[i] += other.verdicts_[i];
  for (std::size_t i = 0; i < kBoundCauses; ++i) causes_[i] += other.causes_[i];
  overruns_ += other.overruns_;
  overwritten_ += other.overwritten_;
  reused_input_ += other.reused_input_;
  worst_excess_ = std::max(worst_excess_, other.worst_excess_);
  worst_end_to_end_ = std::max(worst_end_to_end_, other.worst_end_to_end_);
  worst_at_host_ = std::max(worst_at_host_, other.worst_at_host_);
  responses_.merge(other.responses_);
  lateness_.merge(other.lateness_);
}

std::uint64_t JobSummary::jobs() const { return std::accumulate(verdicts_.begin(), verdicts_.end(), std::uint64_t{0}); }

std::uint64_t JobSummary::over_bound() const {
  return std::accumulate(causes_.begin(), causes_.end(), std::uint64_t{0});
}

}  // namespace tutti::internal
