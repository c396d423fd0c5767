#include "sched/admission/task_changes_yaml.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sched/tasks/task_yaml.hpp"

namespace tutti::internal {
namespace {

/// The tasks that `start` lists, or all tasks where it is left out.
std::vector<TaskId> read_start(const Node* node, const TaskSet& set) {
  std::vector<TaskId> running;
  if (node == nullptr) {
    for (std::size_t i = 0; i < set.tasks.size(); ++i) running.emplace_back(i);
    return running;
  }
  for (const Node& name : read_sequence(*node, "'start'")) {
    const TaskId task = read_task_name(name, set);
    if (std::ranges::find(running, task) != running.end())
      fail(name.place, fmt::format("'{}' stands there twice; leave one out", set.tasks[task.index()].name));
    running.push_back(task);
  }
  std::ranges::sort(running);
  return running;
}

TaskChange read_change(const Node& node, const TaskSet& set) {
  const Fields fields(node, "a change", {"at", "remove", "add"});
  TaskChange change;
  change.at = read_duration(fields.require("at"));
  if (const Node* leaves = fields.find("remove")) change.leaves = read_task_name(*leaves, set);
  if (const Node* comes = fields.find("add")) change.comes = read_task_name(*comes, set);
  if (!change.leaves && !change.comes) fail(node.place, "the change changes nothing; write 'remove', 'add' or both");
  if (change.leaves == change.comes) fail(node.place, "the task that leaves and the one that comes are the same");
  return change;
}

TaskChanges read_task_changes(const Node& document, const TaskSet& set) {
  const Fields fields(document, "a list of changes", {"version", "start", "changes"});
  const Node& list = fields.require("changes");
  const auto nodes = read_sequence(list, "'changes'");
  if (nodes.size() > kMostChanges)
    fail(list.place, fmt::format("{} changes are too many; {} are the most", nodes.size(), kMostChanges));
  TaskChanges changes{read_start(fields.find("start"), set), {}};
  for (const Node& node : nodes) {
    const TaskChange change = read_change(node, set);
    if (!changes.changes.empty() && change.at < changes.changes.back().at)
      fail(node.place, "this change comes before the one above it; write them in order");
    changes.changes.push_back(change);
  }
  return changes;
}

}  // namespace

Expected<TaskChanges> load_task_changes(const std::string& path, const TaskSet& tasks) {
  return read_document(path).and_then(
      [&](const Node& document) { return reading([&] { return read_task_changes(document, tasks); }); });
}

}  // namespace tutti::internal
