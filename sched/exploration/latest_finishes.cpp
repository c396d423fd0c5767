#include "sched/exploration/latest_finishes.hpp"

#include <algorithm>
#include <limits>

namespace tutti::internal {
namespace {

constexpr HalfNs kNever = std::numeric_limits<HalfNs>::min();

}  // namespace

LatestFinishes::Result LatestFinishes::find(std::span<const std::uint32_t> positions, FreeInterval free,
                                            std::size_t from, std::size_t to, bool followed) {
  positions_ = positions;
  free_ = free;
  visits_ = 0;
  latest_.assign(positions.size(), 0);
  if (!find_busy_ends()) return Result::OutOfBudget;
  active_.clear();
  next_ = low_ = 0;
  over_before_.reset();
  const HalfNs horizon = followed ? job(static_cast<std::uint32_t>(positions.size() - 1)).earliest : kNotYetRun;
  for (std::size_t i = from; i < to; ++i) {
    if (any_finish_[i] >= horizon) return Result::Endless;
    const Result result = bound(static_cast<std::uint32_t>(i));
    if (i == from && low_ > 0) over_before_ = arrivals_[low_ - 1].latest;
    if (!budget_.spend(visits_)) return Result::OutOfBudget;
    visits_ = 0;
    if (result != Result::AllInTime) return result;
  }
  return Result::AllInTime;
}

/// The busy intervals of the machine, with every job in them that can be.
/// @return whether the budget was enough: without an end each of them has all later jobs in it
bool LatestFinishes::find_busy_ends() {
  const auto count = static_cast<std::uint32_t>(positions_.size());
  arrivals_.clear();
  first_busy_end_ = kNever;
  if (free_) {
    first_busy_end_ = free_->second;
    for (std::uint32_t i = 0; i < count && job(i).earliest <= first_busy_end_; ++i) first_busy_end_ += job(i).most;
  }
  // A busy interval that starts where the machine became free at the earliest is the first one.
  for (std::uint32_t i = 0; i < count; ++i)
    if (!free_ || job(i).latest > free_->first) arrivals_.push_back({job(i).latest, i});
  std::ranges::sort(arrivals_, [](const Arrival& a, const Arrival& b) {
    return a.latest != b.latest ? a.latest < b.latest : a.index < b.index;
  });
  busy_end_.clear();
  active_.clear();
  any_finish_.assign(count, first_busy_end_);
  std::uint32_t next = 0;
  HalfNs last_end = first_busy_end_;
  for (const Arrival& arrival : arrivals_) {
    std::erase_if(active_, [&](std::uint32_t i) { return job(i).latest < arrival.latest; });
    HalfNs end = arrival.latest;
    std::size_t at = 0;
    for (;; ++at) {
      if (at == active_.size()) {
        while (next < count && job(next).latest < arrival.latest) ++next;
        if (next == count || job(next).earliest > end) break;
        active_.push_back(next++);
      }
      if (job(active_[at]).earliest > end) break;
      end += job(active_[at]).most;
    }
    if (!budget_.spend(1 + static_cast<std::int64_t>(active_.size()))) return false;
    last_end = std::max(last_end, end);
    busy_end_.push_back(last_end);
  }
  // Those of equal latest releases see all of them.
  for (std::size_t i = arrivals_.size(); i-- > 1;)
    if (arrivals_[i - 1].latest == arrivals_[i].latest) busy_end_[i - 1] = busy_end_[i];
  for (std::size_t i = 0; i < arrivals_.size(); ++i) any_finish_[arrivals_[i].index] = busy_end_[i];
  return true;
}

void LatestFinishes::gather(std::uint32_t index, HalfNs end) {
  const bool in_first = free_ && first_busy_end_ >= job(index).earliest;
  const HalfNs back_to = low_ < arrivals_.size() ? arrivals_[low_].latest : job(index).latest;
  if (!in_first) std::erase_if(active_, [&](std::uint32_t i) { return job(i).latest < back_to; });
  for (; next_ < positions_.size() && job(static_cast<std::uint32_t>(next_)).earliest <= end; ++next_)
    active_.push_back(static_cast<std::uint32_t>(next_));
  more_urgent_.clear();
  less_urgent_.clear();
  for (const std::uint32_t i : active_) {
    ++visits_;
    if (i == index) continue;
    if (job(i).earliest > end) break;
    if (jobs_.before(positions_[i], positions_[index])) {
      more_urgent_.push_back(i);
    } else if (job(i).earliest < job(index).latest) {
      less_urgent_.push_back(i);
    }
  }
}

HalfNs LatestFinishes::done_from(HalfNs start) {
  HalfNs done = start;
  for (const std::uint32_t i : more_urgent_) {
    ++visits_;
    if (job(i).earliest > done) break;
    done += job(i).most;
  }
  return done;
}

HalfNs LatestFinishes::blocked_until(HalfNs start) const {
  HalfNs until = start;
  for (const std::uint32_t i : less_urgent_)
    if (std::max(job(i).earliest, free_ ? free_->first : 0) < start)
      until = std::max(until, std::min(start - 1 + job(i).most, any_finish_[i]));
  return until;
}

LatestFinishes::Result LatestFinishes::bound(std::uint32_t index) {
  const SequencedJob& bounded = job(index);
  while (low_ < arrivals_.size() && busy_end_[low_] < bounded.earliest) ++low_;
  gather(index, any_finish_[index]);
  HalfNs start = bounded.earliest;
  suspect_ = {positions_[index], kNever};
  if (free_ && first_busy_end_ >= bounded.earliest) start = std::max(start, done_from(free_->second));
  HalfNs tried = kNever;
  for (std::size_t at = low_; at < arrivals_.size() && arrivals_[at].latest <= bounded.latest; ++at) {
    const auto [from, owner] = arrivals_[at];
    if (from == tried || (owner != index && !jobs_.before(positions_[owner], positions_[index]))) continue;
    tried = from;
    std::erase_if(more_urgent_, [&](std::uint32_t i) { return job(i).latest < from; });
    visits_ += static_cast<std::int64_t>(more_urgent_.size() + less_urgent_.size());
    const HalfNs done = done_from(blocked_until(from));
    if (done < bounded.earliest || done <= start) continue;
    start = done;
    suspect_.busy_from = from;
  }
  latest_[index] = std::min(start + bounded.most, any_finish_[index]);
  return latest_[index] <= bounded.due ? Result::AllInTime : Result::MaybeLate;
}

}  // namespace tutti::internal
