#include "sched/tasks/compile_after.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sched/tasks/task_names.hpp"

namespace tutti::internal {
namespace {

/// The task that each is after; nothing where it is after none, or after one that does not exist.
template <class Tasks>
std::vector<std::optional<std::size_t>> predecessors_of(const Tasks& tasks) {
  const TaskPositions positions = positions_of(tasks);
  std::vector<std::optional<std::size_t>> before;
  for (const auto& task : tasks) {
    const auto found = task.after.empty() ? positions.end() : positions.find(task.after);
    before.push_back(found == positions.end() ? std::nullopt : std::optional(found->second));
  }
  return before;
}

/// The positions in an order in which each task follows the one that it is after; tasks in a circle, and those after
/// them, are left out.
std::vector<std::size_t> from_first_to_last(const std::vector<std::optional<std::size_t>>& before) {
  std::vector<std::vector<std::size_t>> followers(before.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i])
      followers[*before[i]].push_back(i);
    else
      order.push_back(i);
  for (std::size_t at = 0; at < order.size(); ++at)
    for (const std::size_t follower : followers[order[at]]) order.push_back(follower);
  return order;
}

/// Whether a ready job of `first` is always served before one of `second` that has arrived with it.
bool goes_first(const TaskSpec& first, const TaskSpec& second, bool is_earlier, Policy policy) {
  const auto rank = [&](const TaskSpec& task) -> std::int64_t {
    if (policy == Policy::Given) return task.priority.value_or(0);
    return policy == Policy::Rm ? 0 : task.deadline.value_or(task.period).count();
  };
  return rank(first) < rank(second) || (rank(first) == rank(second) && is_earlier);
}

class Follower {
 public:
  Follower(TaskSpec& task, const TaskSpec& before, const std::string& path, Faults& faults)
      : task_(task), before_(before), path_(path), faults_(faults) {}

  /// Gives the task what it has from the other one, and checks the rest.
  void join(bool before_is_earlier, const TaskSetSpec& set) {
    take_over("period", task_.period, before_.period,
              "join tasks of different rates with 'chains', or give both the same period");
    take_over("offset", task_.offset, before_.offset, "leave the offset out");
    if (task_.jitter != Duration{0} || before_.jitter != Duration{0})
      refuse("after", fmt::format("'{}' and '{}' become ready together; leave the jitter of both out", before_.name,
                                  task_.name));
    if (task_.release == ReleaseSource::External || before_.release == ReleaseSource::External)
      refuse("after",
             "'after' is for tasks that the clock releases; leave 'release: external' out of both, or join them "
             "with 'chains'");
    if (!faults_.unread("policy") && !goes_first(before_, task_, before_is_earlier, set.policy))
      refuse("after",
             fmt::format("under {} a job of '{}' can start before that of '{}'; give '{}' a {}, or an equal one "
                         "and list it first",
                         to_string(set.policy), task_.name, before_.name, before_.name,
                         set.policy == Policy::Given ? "smaller priority" : "shorter deadline"));
    if (set.overlap == Overlap::On)
      refuse("after", "'after' is for jobs that run one at a time; write 'overlap: off', or join tasks with 'chains'");
  }

 private:
  void refuse(std::string_view field, std::string message) { faults_.add(path_of(path_, field), std::move(message)); }

  void take_over(std::string_view field, Duration& own, Duration of_before, std::string_view remedy) {
    if (own != Duration{0} && own != of_before)
      refuse(field, fmt::format("the {} of '{}', {}, is not the {} of '{}', which it is after; {}", field, task_.name,
                                to_string(own), to_string(of_before), before_.name, remedy));
    own = of_before;
  }

  TaskSpec& task_;
  const TaskSpec& before_;
  const std::string& path_;
  Faults& faults_;
};

}  // namespace

std::vector<TaskSpec> with_predecessors(const TaskSetSpec& spec, Faults& faults) {
  std::vector<TaskSpec> tasks = spec.tasks;
  const auto before = predecessors_of(tasks);
  const auto path = [](std::size_t i) { return path_of("tasks", i); };
  std::vector<bool> has_order(tasks.size());
  for (const std::size_t i : from_first_to_last(before)) {
    has_order[i] = true;
    if (!before[i]) continue;
    const std::string path_of_task = path(i);
    Follower(tasks[i], tasks[*before[i]], path_of_task, faults).join(*before[i] < i, spec);
  }
  const TaskPositions positions = positions_of(tasks);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::string& name = tasks[i].after;
    if (!has_order[i])
      faults.add(
          path_of(path(i), "after"),
          fmt::format("'{}' is after itself, by way of '{}': tasks in a circle never start; leave an 'after' out",
                      tasks[i].name, name));
    if (name.empty() || before[i] || faults.incomplete("tasks")) continue;
    faults.add(path_of(path(i), "after"), no_such_task(name, positions));
  }
  return tasks;
}

std::vector<std::optional<std::size_t>> arrival_groups(const TaskSet& set) {
  const auto before = predecessors_of(set.tasks);
  std::vector<std::optional<std::size_t>> groups(set.tasks.size());
  for (const std::size_t i : from_first_to_last(before)) {
    if (!before[i]) continue;
    if (!groups[*before[i]]) groups[*before[i]] = *before[i];
    groups[i] = groups[*before[i]];
  }
  return groups;
}

}  // namespace tutti::internal
