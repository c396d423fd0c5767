#include "sched/analyses/np_fp_points.hpp"

#include <algorithm>
#include <tuple>

#include "sched/analyses/np_fp_response_time.hpp"
#include "sched/analyses/utilization.hpp"

namespace tutti::internal {
namespace {

bool fits(const TaskTiming& task) { return !task.regions && fits_64_bits({&task, 1}); }

UnsignedWide least_share(const TaskTiming& task) {
  return static_cast<UnsignedWide>(Divisor<std::int64_t>(task.period.count()).reciprocal()) *
         static_cast<std::uint64_t>(task.wcet.count());
}

UnsignedWide most_share(const TaskTiming& task) {
  return least_share(task) + static_cast<std::uint64_t>(task.wcet.count());
}

}  // namespace

std::int64_t PriorityPoints::Level::work_of(const Level& above, std::int64_t w) const {
  const std::int64_t span = std::max<std::int64_t>(w, 0) + above.timing.jitter.count();
  const std::int64_t jobs = blocking > 0 ? ceil_div(span, above.period) : above.period.floor(span) + 1;
  return jobs * above.timing.wcet.count();
}

bool PriorityPoints::Level::surely_in_time() const {
  if (start < 0 || before_start + blocking > start) return false;
  return timing.wcet.count() == 0 || (second > 0 && before_second + blocking <= second);
}

PriorityPoints::Level PriorityPoints::level_of(std::uint64_t order, const TaskTiming& task) const {
  Level level;
  level.timing = task;
  level.rank = priority_rank(task, policy_);
  level.order = order;
  level.period = Divisor<std::int64_t>(task.period.count());
  level.start = (task.deadline - task.jitter - task.wcet).count();
  level.second = (task.period - task.jitter).count();
  return level;
}

std::size_t PriorityPoints::position_of(const Level& level) const {
  const auto at = std::lower_bound(levels_.begin(), levels_.end(), level, [](const Level& a, const Level& b) {
    return std::tuple(a.rank, a.order) < std::tuple(b.rank, b.order);
  });
  return static_cast<std::size_t>(at - levels_.begin());
}

/// @param at  number of levels above.
void PriorityPoints::count_anew(Level& level, std::size_t at) const {
  level.before_start = 0;
  level.before_second = level.timing.wcet.count();
  for (std::size_t i = 0; i < at; ++i) {
    level.before_start += level.work_of(levels_[i], level.start);
    level.before_second += level.work_of(levels_[i], level.second);
  }
}

std::optional<bool> PriorityPoints::admits(std::uint64_t order, const TaskTiming& task) const {
  if (not_plain_ > 0 || !fits(task)) return std::nullopt;
  if (least_use_ + least_share(task) > kWholeUse) return false;
  if (most_use_ + most_share(task) >= kWholeUse) return std::nullopt;
  Level own = level_of(order, task);
  const std::size_t position = position_of(own);
  std::int64_t blocking = 0;
  for (std::size_t at = levels_.size(); at-- > position;) {
    Level below = levels_[at];
    below.before_start += below.work_of(own, below.start);
    below.before_second += below.work_of(own, below.second);
    if (!below.surely_in_time())
      if (const std::optional<bool> passes = analyse(at + 1, position, task); passes != true) return passes;
    blocking = std::max(blocking, below.timing.wcet.count());
  }
  own.blocking = blocking;
  count_anew(own, position);
  if (!own.surely_in_time())
    if (const std::optional<bool> passes = analyse(position, position, task); passes != true) return passes;
  for (std::size_t at = position; at-- > 0;) {
    if (levels_[at].blocking >= task.wcet.count()) continue;
    Level above = levels_[at];
    const bool other_form = above.blocking == 0;
    above.blocking = task.wcet.count();
    if (other_form) count_anew(above, at);
    if (!above.surely_in_time())
      if (const std::optional<bool> passes = analyse(at, position, task); passes != true) return passes;
  }
  return true;
}

/// Analyses level `at` of the set with the task inserted at `position`.
std::optional<bool> PriorityPoints::analyse(std::size_t at, std::size_t position, const TaskTiming& task) const {
  std::vector<TaskTiming> tasks;
  tasks.reserve(levels_.size() + 1);
  for (const Level& level : levels_) tasks.push_back(level.timing);
  tasks.insert(tasks.begin() + static_cast<std::ptrdiff_t>(position), task);
  switch (np_fp_level(tasks, at)) {
    case Answer::Schedulable: return true;
    case Answer::NotSchedulable: return false;
    case Answer::Unknown: break;
  }
  return std::nullopt;
}

/// Updates the blocking of every level. The work of a level is counted anew only where its blocking becomes zero or
/// non-zero.
void PriorityPoints::block_anew() {
  std::int64_t blocking = 0;
  for (std::size_t at = levels_.size(); at-- > 0;) {
    Level& level = levels_[at];
    const bool other_form = (level.blocking > 0) != (blocking > 0);
    level.blocking = blocking;
    if (other_form) count_anew(level, at);
    blocking = std::max(blocking, level.timing.wcet.count());
  }
}

void PriorityPoints::insert(std::uint64_t order, const TaskTiming& task) {
  if (!fits(task)) {
    ++not_plain_;
    return;
  }
  Level own = level_of(order, task);
  const std::size_t position = position_of(own);
  count_anew(own, position);
  for (std::size_t at = position; at < levels_.size(); ++at) {
    levels_[at].before_start += levels_[at].work_of(own, levels_[at].start);
    levels_[at].before_second += levels_[at].work_of(own, levels_[at].second);
  }
  levels_.insert(levels_.begin() + static_cast<std::ptrdiff_t>(position), own);
  least_use_ += least_share(task);
  most_use_ += most_share(task);
  block_anew();
}

void PriorityPoints::erase(std::uint64_t order, const TaskTiming& task) {
  if (!fits(task)) {
    --not_plain_;
    return;
  }
  const Level own = level_of(order, task);
  const std::size_t position = position_of(own);
  levels_.erase(levels_.begin() + static_cast<std::ptrdiff_t>(position));
  for (std::size_t at = position; at < levels_.size(); ++at) {
    levels_[at].before_start -= levels_[at].work_of(own, levels_[at].start);
    levels_[at].before_second -= levels_[at].work_of(own, levels_[at].second);
  }
  least_use_ -= least_share(task);
  most_use_ -= most_share(task);
  block_anew();
}

}  // namespace tutti::internal
