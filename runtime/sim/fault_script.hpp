#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/backend_options.hpp"
#include "runtime/sim/fault_backend.hpp"
#include "runtime/sim/fault_clock.hpp"
#include "runtime/triggers/simulated_triggers.hpp"
#include "sched/tasks/task.hpp"
#include "sched/whatif/run_faults.hpp"

namespace tutti::internal {

/// The faults of a list as they meet the runs of one machine. The machine gets a truth of its own: the plan of a batch
/// is replayed on a machine with other bandwidths and costs, with transfers and kernels of other lengths, and what
/// comes of it is what happens.
///
/// Everything follows from the list, the seed and what runs: a draw depends on the seed, the fault, the task and the
/// job alone. A batch sees the machine as it is when the batch is issued.
class FaultScript final : public BatchFaults {
 public:
  /// All that is passed in outlives the script.
  /// @param watchdog  that gives up runs which do not end
  FaultScript(const RunFaults& faults, const TaskSet& set, const Topology& machine, const Watchdog& watchdog,
              std::uint64_t seed);

  void begin(Duration at) override { begin_ = at; }
  [[nodiscard]] const BatchFault* of(const BatchRun& run) override;
  /// How long work of the host takes that begins now and is declared to take this long.
  /// @param now  on the clock
  [[nodiscard]] Duration host_time(TaskId task, std::uint64_t job, Duration declared, Duration now);
  /// What is wrong with a trigger of a simulated device.
  /// @param number  of the task's triggers, from 0
  /// @param at      when it should come, on the clock
  [[nodiscard]] TriggerFault trigger(TaskId task, std::uint64_t number, Duration at);
  /// Whether a list has faults of triggers.
  [[nodiscard]] static bool has_triggers(const RunFaults& faults);
  /// The stalls of the list, in its order.
  [[nodiscard]] static std::vector<FaultClock::Stall> stalls_of(const RunFaults& faults);

  /// [faults] how often each has met something: runs of batches, or host steps.
  [[nodiscard]] std::span<const std::uint64_t> counts() const { return counts_; }

 private:
  using Mask = std::uint64_t;  // of faults, a bit each

  [[nodiscard]] bool meets(std::size_t fault, std::optional<TaskId> task, std::uint64_t job, Duration at) const;
  [[nodiscard]] std::optional<TaskId> task_of(std::string_view name) const;
  /// Whether a fault that is on changes something in the batch of a plan.
  [[nodiscard]] bool concerns(const RunFault& fault, const ExecutionPlan& plan) const;
  void note_failures(const BatchRun& run, std::size_t fault);
  /// The times of a plan with these faults.
  const Timeline& times_of(const BatchRun& run, Mask mask);
  [[nodiscard]] Timeline replayed(const ExecutionPlan& plan, Mask mask);
  const Topology& machine_with(Mask mask);
  [[nodiscard]] Topology slowed(Mask mask) const;
  [[nodiscard]] Batch slowed(const ExecutionPlan& plan, const Topology& machine, Mask mask) const;

  const RunFaults& faults_;
  const TaskSet& set_;
  const Topology& machine_;
  Watchdog watchdog_;
  std::uint64_t seed_;
  Duration begin_{};
  std::vector<std::uint64_t> counts_;
  BatchFault fault_;                   // of the run that was asked about last
  const Timeline* slow_ = nullptr;     // its times; null: the plan's
  std::optional<std::uint32_t> hung_;  // its stream whose kernel hangs
  std::map<Mask, Topology> machines_;
  std::map<std::pair<std::size_t, Mask>, Timeline> known_;  // by batch
};

}  // namespace tutti::internal
