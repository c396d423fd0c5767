#include "sched/tasks/priority.hpp"

#include <algorithm>
#include <numeric>

#include "model/base/expects.hpp"

namespace tutti::internal {

std::int64_t priority_rank(const TaskTiming& task, Policy policy) {
  TUTTI_EXPECTS(!is_by_deadline(policy), "EDF gives no fixed priorities");
  if (policy == Policy::Given) return task.priority;
  return (policy == Policy::Rm ? task.period : task.deadline).count();
}

std::vector<std::size_t> priority_order(std::span<const TaskTiming> tasks, Policy policy) {
  TUTTI_EXPECTS(!is_by_deadline(policy), "EDF gives no fixed priorities");
  std::vector<std::size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return priority_rank(tasks[i], policy); });
  return order;
}

}  // namespace tutti::internal
