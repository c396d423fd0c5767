#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "model/base/document.hpp"
#include "model/base/faults.hpp"
#include "sched/tasks/compile_tasks.hpp"

namespace tutti::internal {

/// Values from the command line that override a task file.
struct TaskFileOverrides {
  std::optional<std::string> machine_path;
  std::optional<Policy> policy;
  Parameters parameters;  ///< take the place of the file's; each must be defined there
  bool no_peer = false;   ///< plan for the machine without its peer access
  std::optional<Overlap> overlap = {};
  std::string parameter_source = "parameter";  ///< in front of a parameter's name, in faults: "--set"
  std::optional<Conductor> conductor = {};
  std::string conductor_source = "conductor";  ///< what `conductor` is, in faults: "--conductor gpu"
  std::string only_host = {};  ///< why the host leads whatever the file says, a sentence: a GPU that is asked for is
                               ///< refused with it; empty: nothing
};

/// Reads a task set and the machine that it names, each file once.
/// @errors InvalidInput with file, line and column: all that is wrong with one of the files.
[[nodiscard]] Expected<TaskStudy> load_study(const std::string& path, const TaskFileOverrides& overrides = {});

/// The spec in the text of a task file.
/// @errors InvalidInput with `name`, line and column.
[[nodiscard]] Expected<TaskSetSpec> parse_task_spec(std::string_view text, const std::string& name);

/// Reads the text of a task file for a machine; `machine` in it is not read.
/// @errors InvalidInput with line and column.
[[nodiscard]] Expected<TaskStudy> parse_study(std::string_view text, const Topology& machine);
/// The task set of a file that is already parsed, for a machine.
/// @errors as `parse_study`.
[[nodiscard]] Expected<TaskStudy> study_from(const Node& document, const Topology& machine);

/// The task set of a file, the overrides included.
/// @errors as `load_study`.
[[nodiscard]] Expected<TaskSet> load_tasks(const std::string& path, const TaskFileOverrides& overrides = {});

/// The task of the set with this name; where there is none, a fault with the nearest name.
/// @param path  of the field that has the name
[[nodiscard]] std::optional<TaskId> find_task(const TaskSet& set, const std::string& name, Faults& faults,
                                              const std::string& path);

/// The JSON Schema of a task set.
[[nodiscard]] std::string task_set_schema();

}  // namespace tutti::internal
