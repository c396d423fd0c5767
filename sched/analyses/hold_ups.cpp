#include "sched/analyses/hold_ups.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "model/base/expects.hpp"
#include "sched/tasks/priority.hpp"

namespace tutti::internal {
namespace {

// Longer than any busy period that matters; within a longer one the hold-ups count again, which is safe.
constexpr Duration kOnceIn{std::int64_t{1} << 40};

}  // namespace

bool limits_hold_ups(std::span<const TaskTiming> tasks) {
  const bool has_regions = std::ranges::any_of(tasks, [](const TaskTiming& task) { return task.regions.has_value(); });
  return !has_regions && std::ranges::any_of(tasks, [](const TaskTiming& task) {
    return task.held_up > Duration{0} && task.held_up_together > Duration{0};
  });
}

std::vector<TaskTiming> without_hold_ups(std::span<const TaskTiming> tasks) {
  std::vector<TaskTiming> bare(tasks.begin(), tasks.end());
  for (TaskTiming& task : bare) {
    TUTTI_EXPECTS(task.held_up <= task.wcet, "the time for which a job is held up is part of its wcet");
    task.wcet -= std::exchange(task.held_up, Duration{0});
    task.held_up_together = Duration{0};
    task.best_case = std::min(task.best_case, task.wcet);
  }
  return bare;
}

std::vector<TaskTiming> in_the_long_run(std::span<const TaskTiming> tasks) {
  return limits_hold_ups(tasks) ? without_hold_ups(tasks) : std::vector<TaskTiming>(tasks.begin(), tasks.end());
}

OrderedTasks held_up_together(std::span<const TaskTiming> tasks, Policy policy, Duration together) {
  OrderedTasks made{without_hold_ups(tasks), policy};
  TaskTiming hold_up;
  hold_up.wcet = together;
  hold_up.period = hold_up.deadline = kOnceIn;
  hold_up.arrivals = tasks.front().arrivals;
  if (is_by_deadline(policy)) {
    for (const TaskTiming& task : tasks) hold_up.deadline = std::min(hold_up.deadline, task.deadline - task.jitter);
    hold_up.deadline = std::max(hold_up.deadline, Duration{1});  // of a task that is late as it arrives
  } else {
    const std::vector<std::size_t> order = priority_order(tasks, policy);
    for (std::size_t rank = 0; rank < order.size(); ++rank)
      made.tasks[order[rank]].priority = static_cast<int>(rank) + 1;
    made.policy = Policy::Given;
  }
  made.tasks.push_back(hold_up);
  return made;
}

HoldUps hold_ups_of(std::span<const TaskTiming> tasks) {
  HoldUps found;
  for (const TaskTiming& task : tasks) {
    found.most = std::max(found.most, task.held_up_together);
    if (task.held_up > Duration{0})
      found.least = found.least > Duration{0} ? std::min(found.least, task.held_up) : task.held_up;
  }
  found.least = std::min(found.least, found.most);
  return found;
}

Verdict without_last(Verdict verdict, std::size_t tasks) {
  const auto is_last = [&](const std::optional<TaskId>& task) { return task && task->index() >= tasks; };
  if (auto& witness = verdict.witness) {
    if (is_last(witness->task)) witness->task.reset();
    if (is_last(witness->blocker)) witness->blocker.reset();
    for (const TaskLoad& load : witness->by_task)
      if (is_last(load.task)) witness->held_up = load.load;
    std::erase_if(witness->by_task, [&](const TaskLoad& load) { return is_last(load.task); });
  }
  if (verdict.worst_response.size() > tasks) verdict.worst_response.resize(tasks);
  return verdict;
}

}  // namespace tutti::internal
