#include "sched/analyses/demand.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "model/expects.hpp"

namespace tutti {
namespace {

/// Jobs of one task wholly inside an interval of length t.
Wide jobs_within(const DemandStep& step, Wide t) {
  return t < step.first ? Wide{0} : floor_div(t - step.first, step.period) + 1;
}

/// The task whose deadline ends an interval of length t; the first of the file, before those with C = 0.
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

}  // namespace

DemandCurve::DemandCurve(std::span<const TaskTiming> tasks) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::int64_t first = (tasks[i].deadline - tasks[i].jitter).count();
    first_point_ = std::min(first_point_, Wide{first});
    if (tasks[i].wcet.count() > 0) steps_.push_back({first, tasks[i].period.count(), tasks[i].wcet.count(), TaskId{i}});
  }
  std::ranges::stable_sort(steps_, {}, &DemandStep::first);
  blocking_from_.assign(steps_.size() + 1, 0);
  for (std::size_t i = steps_.size(); i-- > 0;) blocking_from_[i] = std::max(blocking_from_[i + 1], steps_[i].cost);
}

Wide DemandCurve::load(Wide t) const {
  Wide sum = 0;
  std::size_t i = 0;
  for (; i < steps_.size() && steps_[i].first <= t; ++i)
    sum = capped_sum(sum, work_of(jobs_within(steps_[i], t), steps_[i].cost));
  return capped_sum(sum, blocking_from_[i]);
}

std::optional<Wide> DemandCurve::previous_step(Wide t) const {
  std::optional<Wide> latest;
  for (const DemandStep& step : steps_) {
    if (step.first >= t) break;
    const Wide rise = step.first + floor_div(t - 1 - step.first, step.period) * step.period;
    if (!latest || rise > *latest) latest = rise;
  }
  return latest;
}

FirstFailure walk_up(const DemandCurve& curve, Wide end, StepBudget& budget) {
  if (curve.load(curve.first_point()) > curve.first_point()) return {WalkEnd::Failure, curve.first_point()};
  const std::span<const DemandStep> steps = curve.steps();
  using NextRise = std::pair<Wide, std::size_t>;
  std::priority_queue<NextRise, std::vector<NextRise>, std::greater<>> rises;
  for (std::size_t i = 0; i < steps.size(); ++i) rises.emplace(steps[i].first, i);
  Wide demand = 0;
  std::size_t entered = 0;  // tasks that count as demand; the others may block
  while (!rises.empty() && rises.top().first < end) {
    const Wide t = rises.top().first;
    while (rises.top().first == t) {
      if (!budget.spend(1)) return {WalkEnd::OutOfBudget, t};
      const std::size_t i = rises.top().second;
      rises.pop();
      rises.emplace(t + steps[i].period, i);
      demand = capped_sum(demand, steps[i].cost);
    }
    while (entered < steps.size() && steps[entered].first <= t) ++entered;
    if (demand + curve.blocking_from(entered) > t) return {WalkEnd::Failure, t};
  }
  return {WalkEnd::NoFailure, end};
}

std::optional<Witness> demand_witness(const DemandCurve& curve, std::span<const TaskTiming> tasks, Wide t) {
  const std::optional<Duration> interval = to_duration(t);
  const std::optional<Duration> load = to_duration(curve.load(t));
  if (!interval || !load) return std::nullopt;
  Witness witness;
  witness.task = task_due_at(tasks, t);
  witness.interval = *interval;
  witness.load = *load;
  for (const DemandStep& step : curve.steps()) {
    const Wide jobs = jobs_within(step, t);
    if (jobs > 0) {
      witness.by_task.push_back({step.task, Duration{static_cast<std::int64_t>(jobs) * step.cost}});
    } else if (step.cost > witness.blocking.count() ||
               (step.cost == witness.blocking.count() && step.task < *witness.blocker)) {
      witness.blocking = Duration{step.cost};
      witness.blocker = step.task;
    }
  }
  std::ranges::sort(witness.by_task, {}, &TaskLoad::task);
  return witness;
}

void refuse_by_demand(Verdict& verdict, std::span<const TaskTiming> tasks) {
  verdict.answer = Answer::NotSchedulable;
  const DemandCurve curve(tasks);
  StepBudget budget(kVisitsPerWalk / 4);  // each of its visits goes through a heap
  const FirstFailure failure = walk_up(curve, kFar, budget);
  if (failure.end == WalkEnd::Failure) verdict.witness = demand_witness(curve, tasks, failure.t);
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
  }
}

}  // namespace tutti
