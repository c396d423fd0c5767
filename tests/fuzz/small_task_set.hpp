#pragma once
#include <memory>
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/dispatch/task_program.hpp"
#include "runtime/sim/sim_backend.hpp"
#include "sched/admission/admission.hpp"

namespace tutti::internal::fuzz {

/// The task set that files of scenarios and changes are read for: two small tasks, `inspect` and `alarm`, of which
/// `inspect` lets others pass between its batches.
[[nodiscard]] const TaskSet& small_task_set();

/// A simulated machine on a virtual clock, with a program for each task of that set.
class SimulatedMachine {
 public:
  explicit SimulatedMachine(const PlannedTaskSet& planned);

  [[nodiscard]] Executor& executor() { return executor_; }
  [[nodiscard]] std::span<TaskProgram* const> programs() const { return table_; }

 private:
  KernelRegistry kernels_ = KernelRegistry::with_builtins();
  VirtualClock clock_;
  SimBackend backend_;
  Executor executor_;
  std::vector<std::unique_ptr<PatternProgram>> programs_;
  std::vector<TaskProgram*> table_;
};

}  // namespace tutti::internal::fuzz
