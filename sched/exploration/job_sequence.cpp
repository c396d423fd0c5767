#include "sched/exploration/job_sequence.hpp"

#include <algorithm>
#include <numeric>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

HalfNs halves(Duration time) { return 2 * std::min(time, kTimeInReach).count(); }

/// [n] the jobs by their earliest release, then in the order of the set.
std::vector<std::uint32_t> order_of_releases(std::span<const JobTiming> jobs) {
  std::vector<std::uint32_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto release = [&](std::uint32_t i) { return std::pair(jobs[i].earliest, i); };
  if (!std::ranges::is_sorted(order, {}, release)) std::ranges::sort(order, {}, release);
  return order;
}

}  // namespace

JobSequence::JobSequence(std::span<const JobTiming> jobs) : set_(jobs) {
  TUTTI_EXPECTS(jobs.size() < std::numeric_limits<std::uint32_t>::max(), "positions are 32 bits");
  jobs_.reserve(jobs.size());
  for (const std::uint32_t i : order_of_releases(jobs)) add(jobs[i], i);
}

JobSequence::JobSequence(std::span<const TaskTiming> tasks, Policy policy, const Repetition& repetition)
    : repetition_(repetition), policy_(policy) {
  const std::size_t count = repetition.startup + repetition.per_round;
  jobs_.reserve(count + repetition.per_round);
  PeriodicJobs source(tasks, policy);
  while (jobs_.size() < count) {
    const std::optional<JobTiming> job = source.next();
    if (!job) break;
    add(*job, static_cast<std::size_t>(job->task));
  }
  in_reach_ = in_reach_ && jobs_.size() == count;
}

bool JobSequence::wins_tie(std::size_t a, std::size_t b) const {
  const std::uint32_t x = jobs_[a].source;
  const std::uint32_t y = jobs_[b].source;
  if (repetition_) return x != y ? x < y : a < b;
  return std::pair(set_[x].task, set_[x].id) < std::pair(set_[y].task, set_[y].id);
}

void JobSequence::add(const JobTiming& job, std::size_t source) {
  in_reach_ = in_reach_ && job.latest <= kTimeInReach && job.most <= kTimeInReach;
  jobs_.push_back({halves(job.earliest), halves(job.latest), halves(job.least), halves(job.most), halves(job.deadline),
                   job.priority, static_cast<std::uint32_t>(source)});
  count(jobs_.back());
}

void JobSequence::count(const SequencedJob& job) {
  total_cost_ += job.most;
  last_release_ = std::max(last_release_, job.latest);
  fixed_ = fixed_ && job.earliest == job.latest && job.least == job.most;
  in_reach_ = in_reach_ && total_cost_ + last_release_ <= 2 * Wide{kTimeInReach.count()};
}

bool JobSequence::extend() {
  if (!repetition_ || !in_reach_) return false;
  repeat_last_round();
  return in_reach_;
}

void JobSequence::repeat_last_round() {
  const HalfNs later = halves(repetition_->hyperperiod);
  for (std::size_t i = 0; i < repetition_->per_round; ++i) {
    SequencedJob job = jobs_[jobs_.size() - repetition_->per_round];
    if (std::max(job.latest, job.due) > 2 * kTimeInReach.count() - later) {
      in_reach_ = false;
      return;
    }
    job.earliest += later;
    job.latest += later;
    job.due += later;
    if (policy_ == Policy::Edf) job.priority += later / 2;
    jobs_.push_back(job);
    count(job);
  }
}

}  // namespace tutti::internal
