#pragma once
#include "sched/admission/admission.hpp"
#include "sched/tasks/task_yaml.hpp"

namespace tutti::internal {

/// State of a public task set.
struct TaskSetState {
  TaskFile file;

  [[nodiscard]] const TaskSet& tasks() const { return file.tasks(); }
};

}  // namespace tutti::internal
