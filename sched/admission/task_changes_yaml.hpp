#pragma once
#include <string>
#include <vector>

#include "model/base/document.hpp"
#include "sched/admission/changing_task_set.hpp"

namespace tutti::internal {

/// How a task set changes in a run.
struct TaskChanges {
  std::vector<TaskId> running;      ///< from the start, ascending
  std::vector<TaskChange> changes;  ///< by rising time
};

/// Most changes of one file; more are refused.
inline constexpr std::size_t kMostChanges = 20'000;

/// Reads `version: 1`, `start`, a list of task names (left out: all), and `changes`, a list of {at, remove, add}, of
/// which `remove` or `add` may be left out.
/// @errors InvalidInput with file, line and column: no such task, neither `remove` nor `add`, both of the same task, a
///         time before the one above it.
[[nodiscard]] Expected<TaskChanges> load_task_changes(const std::string& path, const TaskSet& tasks);

/// The changes of a file that is already parsed.
/// @errors as `load_task_changes`.
[[nodiscard]] Expected<TaskChanges> task_changes_from(const Node& document, const TaskSet& tasks);

/// The JSON Schema of a list of changes.
[[nodiscard]] std::string task_changes_schema();

}  // namespace tutti::internal
