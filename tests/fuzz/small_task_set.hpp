#pragma once
#include <memory>
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/dispatch/task_program.hpp"
#include "runtime/sim/sim_backend.hpp"
#include "runtime/triggers/trigger_sources.hpp"
#include "sched/admission/admission.hpp"

namespace tutti::internal::fuzz {

/// The task set that files of scenarios, changes and faults are read for: three small tasks. `inspect` lets others pass
/// between its batches, `alarm` has jitter, triggers release `frame`.
[[nodiscard]] const TaskSet& small_task_set();

/// A simulated machine on a virtual clock, with a program and a simulated trigger for each task of a set.
class SimulatedMachine {
 public:
  explicit SimulatedMachine(const PlannedTaskSet& planned);

  [[nodiscard]] Executor& executor() { return executor_; }
  [[nodiscard]] std::span<TaskProgram* const> programs() const { return table_; }
  /// @param faults  of the triggers; empty: none
  /// @errors as `TriggerSources::make`.
  [[nodiscard]] Expected<TriggerSources> triggers(decltype(TriggerOrigins::faults) faults = {}) const;

 private:
  TaskSet set_;
  KernelRegistry kernels_ = KernelRegistry::with_builtins();
  VirtualClock clock_;
  SimBackend backend_;
  Executor executor_;
  std::vector<std::unique_ptr<PatternProgram>> programs_;
  std::vector<TaskProgram*> table_;
};

}  // namespace tutti::internal::fuzz
