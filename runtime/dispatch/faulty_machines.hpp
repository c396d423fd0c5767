#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/dispatch/spare_machines.hpp"
#include "runtime/dispatch/task_program.hpp"
#include "runtime/sim/fault_script.hpp"
#include "sched/admission/admission.hpp"

namespace tutti::internal {

/// The machines of a run's partitions with the faults of a list: machine, clock and programs are wrapped, and what runs
/// tasks on them knows nothing of it.
class FaultyMachines final : public SpareMachines {
 public:
  /// All that is passed in outlives this.
  /// @param machines  [partitions] simulated ones
  /// @param programs  [tasks]
  /// @param watchdog  that gives up runs which do not end
  /// @param seed      of the draws
  /// @param spares    that are wrapped, too; null: there are none
  FaultyMachines(std::span<Executor* const> machines, std::span<TaskProgram* const> programs,
                 const PlannedTaskSet& planned, const RunFaults& faults, const Watchdog& watchdog, std::uint64_t seed,
                 SpareMachines* spares = nullptr);
  FaultyMachines(const FaultyMachines&) = delete;  // its parts point at each other
  FaultyMachines& operator=(const FaultyMachines&) = delete;
  ~FaultyMachines() override;

  /// [partitions]
  [[nodiscard]] std::span<Executor* const> executors() const { return executors_; }
  /// [tasks]
  [[nodiscard]] std::span<TaskProgram* const> programs() const { return programs_; }
  /// What is wrong with a trigger of a task: see `FaultScript::trigger`.
  [[nodiscard]] TriggerFault trigger(TaskId task, std::uint64_t number, Duration at) const;
  /// [faults] how often each has met something: runs of batches, host steps, triggers, or stalls that the host noticed.
  [[nodiscard]] std::vector<std::uint64_t> counts() const;
  /// @pre there are spare machines
  [[nodiscard]] Expected<Executor*> without(std::size_t partition, std::span<const VertexId> lost) override;

 private:
  struct Machine;
  class Program;

  const RunFaults& faults_;
  SpareMachines* spares_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<Executor*> executors_;
  std::vector<std::unique_ptr<Program>> wrapped_;
  std::vector<TaskProgram*> programs_;
  std::vector<FaultScript*> scripts_;  // [tasks] of their partitions
};

}  // namespace tutti::internal
