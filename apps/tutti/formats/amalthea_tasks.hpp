#pragma once
#include <string>
#include <vector>

#include "apps/tutti/formats/amalthea_model.hpp"
#include "sched/tasks/task_set_spec.hpp"

namespace tutti::internal {

/// What a machine calls the ends of copies.
struct ImportPlaces {
  std::string memory = "mem0";
  std::vector<std::string> gpus = {};  ///< in the order of the model's; empty: gpu0, gpu1 and so on
};

/// A task set that was made of an AMALTHEA model.
struct ImportedTasks {
  TaskSetSpec spec;
  int cores = 0, gpus = 0;              ///< of the model
  std::vector<std::string> notes = {};  ///< what has no place in a task set, or looks like a mistake; a sentence each
};

/// The task set of a model. Each process with a period is a task. The runnables that it calls on cores are host steps,
/// which take the upper bound of their ticks on the slowest core of the model, since a host step may run on any core.
/// Processes that it triggers run at that place of its job: on a GPU a runnable with ticks is a kernel, and one without
/// ticks that writes labels is a copy of these, to the GPU where a kernel comes behind it.
/// @errors InvalidInput with file and line: a name that no part has, ticks without a processor for them, a process with
///         no stimulus or several, a process on several GPUs, on a GPU without a kernel, or on a GPU with a trigger,
///         calls or triggers in a circle, a time above a day, two tasks whose names become one.
[[nodiscard]] Expected<ImportedTasks> imported_tasks(const AmaltheaModel& model, const ImportPlaces& places);

/// Its task file, which begins with the notes.
[[nodiscard]] std::string imported_yaml(const ImportedTasks& tasks);

}  // namespace tutti::internal
