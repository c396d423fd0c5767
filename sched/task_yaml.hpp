#pragma once
#include <optional>
#include <string>

#include "model/batch_yaml.hpp"
#include "sched/task.hpp"

namespace tutti {

/// What the command line says over a task file.
struct TaskFileOverrides {
  std::optional<std::string> machine_path;
  std::optional<Policy> policy;
  Parameters parameters;  ///< take the place of the file's; each must be defined there
  bool no_peer = false;   ///< plan for the machine without its peer access
};

/// Reads a task set and the machine that it names.
/// @errors InvalidInput with file, line and column, whatever is wrong with one of the files.
[[nodiscard]] Expected<TaskSet> load_tasks(const std::string& path, const TaskFileOverrides& overrides = {});

}  // namespace tutti
