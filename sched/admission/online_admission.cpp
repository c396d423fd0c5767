#include "sched/admission/online_admission.hpp"

#include <algorithm>

#include "model/base/expects.hpp"
#include "sched/analyses/np_edf_demand.hpp"
#include "sched/analyses/np_fp_response_time.hpp"
#include "sched/analyses/utilization.hpp"

namespace tutti::internal {
namespace {

/// Longest busy period, with every release delayed by its jitter; nothing where it is out of reach.
/// @source [GRS96] the synchronous busy period.
std::optional<Wide> longest_busy_period(std::span<const TaskTiming> tasks) {
  if (!utilization_at_most_one(tasks)) return std::nullopt;
  StepBudget budget(kVisitsPerWalk / 16);
  Wide length = 0;
  for (const TaskTiming& task : tasks) length += task.wcet.count();
  while (length < kFar && budget.spend(static_cast<std::int64_t>(tasks.size()))) {
    Wide work = 0;
    for (const TaskTiming& task : tasks)
      work = capped_sum(work, work_of(ceil_div(length + task.jitter.count(), task.period.count()), task.wcet.count()));
    if (work <= length) return length;
    length = work;
  }
  return std::nullopt;
}

}  // namespace

OnlineAdmission::Outcome OnlineAdmission::add(const TaskTiming& timing, Duration now, std::size_t position) {
  expect_valid_timing({&timing, 1});
  let_go(now);
  constexpr int kComingBits = 32;
  TUTTI_EXPECTS(position >> kComingBits == 0 && arrivals_ + 1 < std::uint64_t{1} << kComingBits,
                "2^32 positions, and as many tasks that come");
  const std::uint64_t order = std::uint64_t{position} << kComingBits | (arrivals_ + 1);
  const Answer answer = test_with(timing, order);
  if (answer != Answer::Schedulable) return {answer, std::nullopt};
  return {answer, insert(timing, order)};
}

void OnlineAdmission::remove(TaskId task, Duration now, std::optional<Duration> last_arrival) {
  Entry& entry = entries_.at(task.index());
  TUTTI_EXPECTS(entry.order > 0 && !entry.leaving, "the task is in the set and does not leave it yet");
  let_go(now);
  if (!last_arrival) return take_out(task.index());
  entry.leaving = true;
  entry.last_arrival = *last_arrival;
  leaving_.push_back(task.index());
  let_go(now);
}

OnlineAdmission::Outcome OnlineAdmission::change(TaskId task, const TaskTiming& timing, Duration now,
                                                 std::optional<Duration> last_arrival, std::size_t position) {
  expect_valid_timing({&timing, 1});
  Entry& entry = entries_.at(task.index());
  TUTTI_EXPECTS(entry.order > 0 && !entry.leaving, "the task is in the set and does not leave it yet");
  const Entry before = entry;
  remove(task, now, last_arrival);
  const bool gone = entry.order == 0;
  const Outcome outcome = add(timing, now, position);
  if (outcome.task) return outcome;
  if (gone) {
    std::erase(free_, task.index());
    entries_[task.index()] = before;
    insert(task.index());
  } else {
    std::erase(leaving_, task.index());
    entries_[task.index()] = before;
  }
  return outcome;
}

void OnlineAdmission::idle_at(Duration moment) { idle_ = std::max(idle_.value_or(moment), moment); }

std::vector<TaskTiming> OnlineAdmission::counted(Duration now) {
  let_go(now);
  return all_tasks();
}

std::vector<TaskTiming> OnlineAdmission::all_tasks() const {
  std::vector<const Entry*> here;
  for (const Entry& entry : entries_)
    if (entry.order > 0) here.push_back(&entry);
  std::ranges::sort(here, {}, &Entry::order);
  std::vector<TaskTiming> tasks;
  for (const Entry* entry : here) tasks.push_back(entry->timing);
  return tasks;
}

bool OnlineAdmission::may_stop(const Entry& entry, Duration now) {
  const TaskTiming& timing = entry.timing;
  const Wide ready = Wide{entry.last_arrival.count()} + timing.jitter.count();
  if (now.count() < ready + std::max(timing.period, timing.deadline).count()) return false;
  if (idle_ && idle_->count() > ready) return true;
  if (!busy_period_) busy_period_ = longest_busy_period(all_tasks());
  return *busy_period_ && now.count() >= ready + **busy_period_;
}

void OnlineAdmission::let_go(Duration now) {
  for (std::size_t i = 0; i < leaving_.size();) {
    if (!may_stop(entries_[leaving_[i]], now)) {
      ++i;
      continue;
    }
    take_out(leaving_[i]);
    leaving_.erase(leaving_.begin() + static_cast<std::ptrdiff_t>(i));
    i = 0;  // fewer tasks count, so others may stop counting sooner
  }
}

Answer OnlineAdmission::test_with(const TaskTiming& timing, std::uint64_t order) {
  const std::optional<bool> admits = policy_ == Policy::Edf ? buckets_.admits(timing) : points_.admits(order, timing);
  if (admits) return *admits ? Answer::Schedulable : Answer::NotSchedulable;
  std::vector<TaskTiming> tasks = all_tasks();
  const auto before =
      std::ranges::count_if(entries_, [&](const Entry& entry) { return entry.order > 0 && entry.order < order; });
  tasks.insert(tasks.begin() + before, timing);
  return (policy_ == Policy::Edf ? np_edf_demand : np_fp_response_time)(tasks, policy_).answer;
}

TaskId OnlineAdmission::insert(const TaskTiming& timing, std::uint64_t order) {
  std::size_t slot = entries_.size();
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  ++arrivals_;
  entries_[slot] = {timing, order, false, {}};
  insert(slot);
  return TaskId{slot};
}

void OnlineAdmission::insert(std::size_t slot) {
  const Entry& entry = entries_[slot];
  if (policy_ == Policy::Edf)
    buckets_.insert(slot, entry.timing);
  else
    points_.insert(entry.order, entry.timing);
  busy_period_.reset();
}

void OnlineAdmission::take_out(std::size_t slot) {
  const Entry& entry = entries_[slot];
  if (policy_ == Policy::Edf)
    buckets_.erase(slot, entry.timing);
  else
    points_.erase(entry.order, entry.timing);
  entries_[slot] = {};
  free_.push_back(slot);
  busy_period_.reset();
}

}  // namespace tutti::internal
