#pragma once
#include <string>

#include "model/base/document.hpp"
#include "sched/tasks/task.hpp"
#include "sched/whatif/run_faults.hpp"

namespace tutti::internal {

/// Reads `version: 1` and `faults`, a list of {kind} with the fields of the kind (`kFaultKinds`).
/// @errors InvalidInput with file, line and column: an unknown kind, a field that the kind has not or that is missing,
///         no such task, link or GPU, a task with nothing that the fault could meet, more than `kMostFaults`.
[[nodiscard]] Expected<RunFaults> load_run_faults(const std::string& path, const TaskSet& tasks);

/// The faults of a file that is already parsed.
/// @errors as `load_run_faults`.
[[nodiscard]] Expected<RunFaults> run_faults_from(const Node& document, const TaskSet& tasks);

/// The JSON Schema of a list of faults.
[[nodiscard]] std::string run_faults_schema();

}  // namespace tutti::internal
