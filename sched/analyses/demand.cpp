#include "sched/analyses/demand.hpp"

#include <functional>
#include <queue>
#include <utility>

#include "model/base/expects.hpp"
#include "sched/analyses/utilization.hpp"

namespace tutti::internal {
namespace {

/// The task whose deadline ends an interval of length t; the first in the file, one with C = 0 last.
std::optional<TaskId> task_due_at(std::span<const TaskTiming> tasks, Wide t) {
  std::optional<TaskId> due;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Wide past_first = t - (tasks[i].deadline - tasks[i].jitter).count();
    if (past_first < 0 || past_first % tasks[i].period.count() != 0) continue;
    if (tasks[i].wcet.count() > 0) return TaskId{i};
    if (!due) due = TaskId{i};
  }
  return due;
}

/// Steps by rising `first` with the blocking from each on: for a walk from 0 upwards.
template <class Int>
struct RisingSteps {
  std::vector<DemandStep<Int>> steps;
  std::vector<std::int64_t> blocking_from;  ///< [n + 1] the longest region from there on; the last is 0

  explicit RisingSteps(std::span<const DemandStep<Int>> of) : steps(of.begin(), of.end()) {
    std::ranges::sort(steps, {}, &DemandStep<Int>::first);
    blocking_from.assign(steps.size() + 1, 0);
    for (std::size_t i = steps.size(); i-- > 0;) blocking_from[i] = std::max(blocking_from[i + 1], steps[i].region);
  }
};

/// Budget of the search for the smallest failing interval, of which each visit goes through a heap.
///
/// Where U > 1, the refusal needs no interval, and the first one that fails can lie far away: the larger the set, the
/// smaller the budget.
std::int64_t visits_to_failure(std::span<const TaskTiming> tasks) {
  constexpr std::int64_t kMost = kVisitsPerWalk / 4;
  constexpr std::int64_t kTasksWithMost = 100;
  const std::int64_t size = std::ssize(tasks);
  return size <= kTasksWithMost || utilization_at_most_one(tasks) ? kMost : kMost * kTasksWithMost / size;
}

/// The smallest failing interval of a set, if there is one within reach.
template <class Int>
std::optional<Wide> smallest_failure(std::span<const TaskTiming> tasks) {
  StepBudget budget(visits_to_failure(tasks));
  const FirstFailure<Int> failure = walk_up(DemandCurve<Int>(tasks), kEndOf<Int>, budget);
  return failure.end == WalkEnd::Failure ? std::optional<Wide>(failure.t) : std::nullopt;
}

}  // namespace

template <class Int>
DemandCurve<Int>::DemandCurve(std::span<const TaskTiming> tasks) {
  steps_.reserve(tasks.size());
  for (const TaskTiming& task : tasks) {
    const Int first = task.deadline.count() - task.jitter.count();
    first_point_ = std::min(first_point_, first);
    if (task.wcet.count() == 0) continue;
    unblocked_from_ = steps_.empty() ? first : std::max(unblocked_from_, first);
    steps_.push_back({first, Divisor<Int>(task.period.count()), task.wcet.count(), task.longest_region().count()});
  }
  if (steps_.empty()) unblocked_from_ = first_point_;
}

template <class Int>
Int DemandCurve<Int>::load(Int t) const {
  Int demand = 0;
  Int blocking = 0;
  // No branch: the tasks are in no order, so a branch on which of them block is unpredictable.
  for (const DemandStep<Int>& step : steps_) {
    const Int past = t - step.first;
    const Int blocks = past < 0 ? -1 : 0;  // all bits or none
    const Int work = work_of(step.period.floor(past & ~blocks) + 1, step.cost);
    demand = capped_sum(demand, work & ~blocks);
    blocking = std::max<Int>(blocking, step.region & blocks);
  }
  return capped_sum(demand, blocking);
}

template <class Int>
std::optional<Int> DemandCurve<Int>::previous_step(Int t) const {
  std::optional<Int> latest;
  for (const DemandStep<Int>& step : steps_) {
    if (step.first >= t) continue;
    const Int rise = step.first + step.period.floor(t - 1 - step.first) * step.period.number();
    if (!latest || rise > *latest) latest = rise;
  }
  return latest;
}

template <>
UnsignedWide DemandCurve<Wide>::slack() const {
  return 0;
}

template <>
UnsignedWide DemandCurve<std::int64_t>::slack() const {
  UnsignedWide most = 0;  // below 2^20 * 2^39 * 2^64
  for (const DemandStep<std::int64_t>& step : steps_)
    most += (static_cast<UnsignedWide>(step.period.reciprocal()) + 1) * static_cast<std::uint64_t>(step.cost);
  return most < kWholeUse ? kWholeUse - most : 0;
}

template <class Int>
FirstFailure<Int> walk_up(const DemandCurve<Int>& curve, Int end, StepBudget& budget) {
  const RisingSteps<Int> rising(curve.steps());
  const std::vector<DemandStep<Int>>& steps = rising.steps;
  // A first deadline before all steps is one of a task with C = 0; otherwise the steps themselves come to it.
  const Int first = curve.first_point();
  if (!steps.empty() && first < steps.front().first && rising.blocking_from[0] > first)
    return {WalkEnd::Failure, first};
  if (steps.empty() && first < 0) return {WalkEnd::Failure, first};
  using NextRise = std::pair<Int, std::size_t>;
  std::priority_queue<NextRise, std::vector<NextRise>, std::greater<>> rises;
  for (std::size_t i = 0; i < steps.size(); ++i) rises.emplace(steps[i].first, i);
  Int demand = 0;
  std::size_t entered = 0;  // tasks that count as demand; the others may block
  while (!rises.empty() && rises.top().first < end) {
    const Int t = rises.top().first;
    while (rises.top().first == t) {
      if (!budget.spend(1)) return {WalkEnd::OutOfBudget, t};
      const std::size_t i = rises.top().second;
      rises.pop();
      rises.emplace(t + steps[i].period.number(), i);
      demand = capped_sum(demand, Int{steps[i].cost});
    }
    while (entered < steps.size() && steps[entered].first <= t) ++entered;
    if (demand + rising.blocking_from[entered] > t) return {WalkEnd::Failure, t};
  }
  return {WalkEnd::NoFailure, end};
}

template class DemandCurve<std::int64_t>;
template class DemandCurve<Wide>;
template FirstFailure<std::int64_t> walk_up(const DemandCurve<std::int64_t>&, std::int64_t, StepBudget&);
template FirstFailure<Wide> walk_up(const DemandCurve<Wide>&, Wide, StepBudget&);

std::optional<Witness> demand_witness(std::span<const TaskTiming> tasks, Wide t) {
  const std::optional<Duration> interval = to_duration(t);
  if (!interval) return std::nullopt;
  Witness witness;
  witness.task = task_due_at(tasks, t);
  witness.interval = *interval;
  Wide sum = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::int64_t cost = tasks[i].wcet.count();
    const DemandStep<Wide> step{tasks[i].deadline.count() - Wide{tasks[i].jitter.count()},
                                Divisor<Wide>(tasks[i].period.count()), cost, tasks[i].longest_region().count()};
    const Wide work = work_of(step.jobs_within(t), cost);
    sum = capped_sum(sum, work);
    if (work > 0) {
      const std::optional<Duration> load = to_duration(work);
      if (!load) return std::nullopt;
      witness.by_task.push_back({TaskId{i}, *load});
    } else if (step.first > t && step.region > witness.blocking.count()) {
      witness.blocking = Duration{step.region};
      witness.blocker = TaskId{i};
    }
  }
  const std::optional<Duration> load = to_duration(capped_sum(sum, Wide{witness.blocking.count()}));
  if (!load) return std::nullopt;
  witness.load = *load;
  return witness;
}

void refuse_by_demand(Verdict& verdict, std::span<const TaskTiming> tasks) {
  verdict.answer = Answer::NotSchedulable;
  const std::optional<Wide> t =
      fits_64_bits(tasks) ? smallest_failure<std::int64_t>(tasks) : smallest_failure<Wide>(tasks);
  if (t) verdict.witness = demand_witness(tasks, *t);
  if (!verdict.witness)
    verdict.reason =
        "more must be done in some interval than there is time, but the smallest such interval or its load is too long "
        "to give";
}

void expect_valid_timing(std::span<const TaskTiming> tasks) {
  for (const TaskTiming& task : tasks) {
    TUTTI_EXPECTS(task.wcet.count() >= 0, "a wcet is never negative");
    TUTTI_EXPECTS(task.period.count() > 0, "a period is positive");
    TUTTI_EXPECTS(task.deadline.count() > 0, "a deadline is positive");
    TUTTI_EXPECTS(task.jitter.count() >= 0, "a jitter is never negative");
    TUTTI_EXPECTS(task.longest_region() <= task.wcet && task.last_region() <= task.longest_region() &&
                      task.last_region().count() >= 0,
                  "parts lie within the job");
  }
}

}  // namespace tutti::internal
