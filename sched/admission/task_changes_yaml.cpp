#include "sched/admission/task_changes_yaml.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "model/base/record.hpp"
#include "sched/tasks/task_yaml.hpp"

namespace tutti::internal {

/// A change as a file says it.
struct TaskChangeSpec {
  Duration at{};
  std::optional<std::string> remove = {};
  std::optional<std::string> add = {};
};
struct TaskChangesSpec {
  std::optional<std::vector<std::string>> start = {};  ///< absent: all tasks
  std::vector<TaskChangeSpec> changes;
};

template <>
struct Record<TaskChangeSpec> {
  static constexpr std::string_view what = "a change";
  static constexpr std::tuple fields{Field{"at", &TaskChangeSpec::at}.required(),
                                     Field{"remove", &TaskChangeSpec::remove}, Field{"add", &TaskChangeSpec::add}};
};
template <>
struct Record<TaskChangesSpec> {
  static constexpr std::string_view what = "a list of changes";
  static constexpr bool is_file = true;
  static constexpr std::tuple fields{Field{"start", &TaskChangesSpec::start},
                                     Field{"changes", &TaskChangesSpec::changes}.required()};
};

namespace {

/// The tasks that `start` lists, or all tasks where it is left out.
std::vector<TaskId> tasks_at_start(const TaskChangesSpec& spec, const TaskSet& set, Faults& faults) {
  std::vector<TaskId> running;
  if (!spec.start) {
    for (std::size_t i = 0; i < set.tasks.size(); ++i) running.emplace_back(i);
    return running;
  }
  for (std::size_t i = 0; i < spec.start->size(); ++i) {
    const std::string path = path_of("start", i);
    const auto task = find_task(set, (*spec.start)[i], faults, path);
    if (!task) continue;
    if (std::ranges::find(running, *task) != running.end())
      faults.add(path, fmt::format("'{}' stands there twice; leave one out", (*spec.start)[i]));
    running.push_back(*task);
  }
  std::ranges::sort(running);
  return running;
}

TaskChange compile_change(const TaskChangeSpec& spec, const TaskSet& set, Faults& faults, const std::string& path) {
  TaskChange change;
  change.at = spec.at;
  if (spec.remove) change.leaves = find_task(set, *spec.remove, faults, path_of(path, "remove"));
  if (spec.add) change.comes = find_task(set, *spec.add, faults, path_of(path, "add"));
  if (!spec.remove && !spec.add)
    faults.add(path, "the change changes nothing; write 'remove', 'add' or both");
  else if (change.leaves && change.leaves == change.comes)
    faults.add(path, "the task that leaves and the one that comes are the same; name another one, or leave one out");
  return change;
}

Expected<TaskChanges> changes_of(const TaskChangesSpec& spec, const TaskSet& set, Faults faults) {
  if (spec.changes.size() > kMostChanges) {
    faults.add("changes", fmt::format("{} changes are too many; {} are the most", spec.changes.size(), kMostChanges));
    return tl::unexpected(faults.error());
  }
  TaskChanges changes{tasks_at_start(spec, set, faults), {}};
  for (std::size_t i = 0; i < spec.changes.size(); ++i) {
    const std::string path = path_of("changes", i);
    changes.changes.push_back(compile_change(spec.changes[i], set, faults, path));
    if (i > 0 && spec.changes[i].at < spec.changes[i - 1].at)
      faults.add(path, "this change comes before the one above it; write them in order");
  }
  if (!faults.none()) return tl::unexpected(faults.error());
  return changes;
}

}  // namespace

Expected<TaskChanges> task_changes_from(const Node& document, const TaskSet& tasks) {
  return compiled<TaskChangesSpec>(
      document, [&](const TaskChangesSpec& spec, Faults faults) { return changes_of(spec, tasks, std::move(faults)); });
}

Expected<TaskChanges> load_task_changes(const std::string& path, const TaskSet& tasks) {
  return read_document(path).and_then([&](const Node& document) { return task_changes_from(document, tasks); });
}

std::string task_changes_schema() { return file_schema<TaskChangesSpec>(); }

}  // namespace tutti::internal
