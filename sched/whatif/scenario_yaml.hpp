#pragma once
#include <string>

#include "model/base/document.hpp"
#include "sched/whatif/scenario.hpp"

namespace tutti::internal {

/// Reads a scenario for a task set: `version: 1`, then `jobs`, a list of {task, arrival, ready, takes}; `ready` is the
/// arrival where it is left out.
/// @errors InvalidInput with file, line and column: no such task, ready before the arrival, or before the job of the
///         same task that arrived before, more than `kMostScenarioJobs` jobs.
[[nodiscard]] Expected<Scenario> load_scenario(const std::string& path, const TaskSet& tasks);

/// The scenario of a file that is already parsed.
/// @errors as `load_scenario`.
[[nodiscard]] Expected<Scenario> scenario_from(const Node& document, const TaskSet& tasks);

/// A file that `load_scenario` reads back as it was.
[[nodiscard]] std::string to_yaml(const Scenario& scenario, const TaskSet& tasks);

/// The JSON Schema of a scenario.
[[nodiscard]] std::string scenario_schema();

}  // namespace tutti::internal
