#include "sched/exploration/reduction.hpp"

#include <algorithm>

namespace tutti::internal {

bool Reduction::has(std::size_t position) const {
  return position - first_ < in_set_.size() && in_set_[position - first_];
}

void Reduction::add(std::uint32_t position) {
  const SequencedJob& job = jobs_[position];
  if (in_set_.size() <= position - first_) in_set_.resize(2 * (position - first_) + 1, false);
  in_set_[position - first_] = true;
  const auto at =
      std::ranges::upper_bound(by_release_, job.latest, {}, [&](std::uint32_t i) { return jobs_[i].latest; });
  auto index = static_cast<std::size_t>(at - by_release_.begin());
  by_release_.insert(at, position);
  ends_.resize(ends_.size() + 1);
  visits_ += 1 + static_cast<std::int64_t>(by_release_.size() - index);
  for (; index < by_release_.size(); ++index) {
    const SequencedJob& next = jobs_[by_release_[index]];
    ends_[index + 1] = std::max(ends_[index], next.latest) + next.most;
  }
  if (by_release_.size() == 1 || jobs_.before(least_urgent_, position)) least_urgent_ = position;
  shortest_ = by_release_.size() == 1 ? job.most : std::min(shortest_, job.most);
}

bool Reduction::interferes(std::uint32_t position) {
  const SequencedJob& job = jobs_[position];
  const HalfNs soonest = std::max(job.earliest, from_);  // (2)
  const bool last = jobs_.before(least_urgent_, position);
  if (soonest > last_start()) return false;
  HalfNs over = soonest;  // (3) for the jobs that go before this one and are surely released by then
  HalfNs least = from_;
  for (const std::uint32_t other : by_release_) {
    if (!jobs_.before(other, position)) continue;
    ++visits_;
    const SequencedJob& before = jobs_[other];
    if (over <= std::min(before.latest - 1, last_start())) return true;
    least += before.least;
    over = std::max({over, least, before.latest, std::max(from_, before.earliest) + before.least});
    if (over > last_start()) return false;
  }
  return !last && over <= last_start();  // (4)
}

HalfNs Reduction::first_end() const {
  HalfNs end = from_;
  for (const std::uint32_t position : positions_) end = std::max(end, jobs_[position].earliest) + jobs_[position].least;
  return end;
}

Reduction::Result Reduction::find(const GraphState& state, const FinishedJobs& finished, std::span<const NextJob> seeds,
                                  std::size_t most) {
  from_ = state.from;
  first_ = state.first;
  by_release_.clear();
  ends_.assign(1, state.until);
  in_set_.assign(64, false);
  for (const NextJob& seed : seeds) add(seed.position);
  for (bool grown = true; grown;) {
    grown = false;
    for (std::size_t position = first_; jobs_.has(position) && jobs_[position].earliest <= last_start();
         position = finished.next_pending(position + 1)) {
      visits_ = 1;
      const bool joins = !has(position) && interferes(static_cast<std::uint32_t>(position));
      if (joins) add(static_cast<std::uint32_t>(position));
      if (!budget_.spend(visits_)) return Result::OutOfBudget;
      if (!joins) continue;
      grown = true;
      if (by_release_.size() > most) return Result::TooLarge;
    }
  }
  positions_ = by_release_;
  std::ranges::sort(positions_);
  return Result::Closed;
}

}  // namespace tutti::internal
