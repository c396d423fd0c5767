#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/backend.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/led_run.hpp"

namespace tutti::internal {

/// A run of a batch that is about to begin.
struct BatchRun {
  const ExecutionPlan& plan;
  const Timeline& times;    ///< that it takes without a fault: the plan's, or those that it was to follow
  const std::string& name;  ///< of the batch in messages
  std::size_t batch = 0;    ///< number of the batch, in the order of preparing
  std::uint64_t run = 0;    ///< of the batch, from 0
  JobLabel job;             ///< that it is part of
  bool overlaps = false;    ///< with others under way (`BoundPlan::overlaps`)
  Duration at{};            ///< when it was issued, on the clock
};

/// What goes wrong in one run of a batch.
struct BatchFault {
  /// Changes the times that the machine takes (`BatchRun::times`). All bytes arrive in any case: segments of a transfer
  /// that no longer fit its start and end are stretched. The run is as long as its latest stream, or as without the
  /// fault.
  std::function<void(Timeline&)> times = nullptr;
  const Topology* shares = nullptr;       ///< of a batch that overlaps: the machine whose bandwidths copies share
  Duration late_submit{};                 ///< passes before the backend takes the batch
  Duration late_notice{};                 ///< the end is seen so long after it
  Duration no_sooner{};                   ///< the end is seen at least so long after the start
  Duration late_return{};                 ///< passes between the seen end and the return to the caller
  Duration held_up{};                     ///< pause of the host that the backend itself has measured
  Duration copies_held_up{};              ///< pause of threads that copy, likewise
  std::optional<Error> error = {};        ///< how the run fails
  std::optional<BoundCause> cause = {};   ///< of a failure that takes time
  std::optional<VertexId> lost_gpu = {};  ///< that the failure is the loss of
};

/// Decides what goes wrong. One source of a run's faults.
class BatchFaults {
 public:
  virtual ~BatchFaults() = default;
  /// A run of a task set starts at this instant.
  virtual void begin(Duration) {}
  /// What goes wrong in a run; null: nothing. Valid until the next call.
  [[nodiscard]] virtual const BatchFault* of(const BatchRun& run) = 0;
};

/// A simulated machine behind which things go wrong: the one way to faults of machine and host, in tests, in the
/// simulation and in `tutti run --faults`. A fault takes the time that it says, so that later runs wait for it; bytes
/// move and kernels run at the times that the faults leave.
///
/// Runs without a fault allocate nothing, and neither do faults that keep the shape of the plan. Several can be
/// stacked.
class FaultBackend : public DeviceBackend {
 public:
  /// @param machine  that can follow other times than a plan's (`BackendBatch::follow`)
  /// @param clock    of the host
  /// @param first    number of the first batch; the faults may know batches of other backends by smaller ones
  FaultBackend(DeviceBackend& machine, Clock& clock, BatchFaults& faults, std::size_t first = 0)
      : machine_(machine), clock_(clock), faults_(faults), batches_(first) {}

  [[nodiscard]] std::string_view name() const override { return machine_.name(); }
  [[nodiscard]] bool starts_cold() const override { return machine_.starts_cold(); }
  /// False: a fault may hold a run up before it starts.
  [[nodiscard]] bool links_runs() const override { return false; }
  [[nodiscard]] bool busy() const override { return machine_.busy(); }
  void begin_overlapping(Waker& caller) override { machine_.begin_overlapping(caller); }
  void end_overlapping() override { machine_.end_overlapping(); }
  [[nodiscard]] Duration next_event() const override { return machine_.next_event(); }
  void share_as(const Topology* machine) override { machine_.share_as(machine); }
  [[nodiscard]] std::vector<std::string> notes() const override { return machine_.notes(); }
  [[nodiscard]] Duration processor_time() const override { return machine_.processor_time(); }
  [[nodiscard]] std::vector<PinnedUse> pinned_memory() const override { return machine_.pinned_memory(); }
  [[nodiscard]] Duration tolerated_lag() const override { return machine_.tolerated_lag(); }
  [[nodiscard]] std::vector<std::string> foreign_load() const override { return machine_.foreign_load(); }
  [[nodiscard]] std::vector<VertexId> lost_gpus() override;
  [[nodiscard]] int cuda_device(VertexId gpu) const override { return machine_.cuda_device(gpu); }
  [[nodiscard]] Baselines* baselines() override { return machine_.baselines(); }
  [[nodiscard]] std::uint64_t begin_job(const JobLabel& job) override { return machine_.begin_job(job); }
  void end_job(std::uint64_t shown) override { machine_.end_job(shown); }
  void begin_run(Duration at) override;
  [[nodiscard]] Expected<Buffer> allocate(VertexId where, Bytes size) override {
    return machine_.allocate(where, size);
  }
  [[nodiscard]] Expected<Buffer> allocate_unwritten(VertexId where, Bytes size) override {
    return machine_.allocate_unwritten(where, size);
  }
  [[nodiscard]] Expected<Buffer> wrap(VertexId where, std::span<std::byte> memory,
                                      std::shared_ptr<void> owner) override {
    return machine_.wrap(where, memory, std::move(owner));
  }
  void unpin_given_up() override { machine_.unpin_given_up(); }
  [[nodiscard]] Expected<std::unique_ptr<BackendBatch>> prepare(BoundPlan bound) override;
  /// The machine leads on its own clock, on which the host's stalls are nothing. No other fault meets it.
  [[nodiscard]] Expected<std::unique_ptr<LedRun>> lead(LedSet set) override;
  [[nodiscard]] Expected<void> set_gates_apart() override { return machine_.set_gates_apart(); }
  /// The number that the next batch gets.
  [[nodiscard]] std::size_t batches() const { return batches_; }

 private:
  class Batch;

  DeviceBackend& machine_;
  Clock& clock_;
  BatchFaults& faults_;
  std::size_t batches_;         // prepared so far, by `first` more
  std::vector<VertexId> lost_;  // GPUs, by faults
};

}  // namespace tutti::internal
