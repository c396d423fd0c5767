#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/batch/execution_plan.hpp"
#include "runtime/core/backend.hpp"
#include "runtime/core/broken_bound.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/thread_role.hpp"

namespace tutti::internal {

class Executor;

/// A batch that is ready to run repeatedly. Move-only; its destructor waits for its run.
class PreparedBatch {
 public:
  [[nodiscard]] const ExecutionPlan& plan() const { return plan_; }
  /// Measured timeline of the last run. @pre it was synchronized.
  [[nodiscard]] Timeline measured() const { return batch_->measured(); }

 private:
  /// The guarantees of an admitted batch, and memory for the timeline of a run that broke them.
  struct Promised {
    BatchPromise promise;
    Timeline measured;
  };

  friend class Executor;
  PreparedBatch(std::unique_ptr<BackendBatch> batch, ExecutionPlan plan)
      : batch_(std::move(batch)), plan_(std::move(plan)) {}

  std::unique_ptr<BackendBatch> batch_;
  ExecutionPlan plan_;
  std::optional<Promised> promised_;
  std::uint64_t run_ = 0;  // the admitted run that it belongs to; 0: none
  bool issued_ = false;    // ever
  bool under_way_ = false;
  bool reviewed_ = true;  // the last run
};

/// Runs plans on one machine, one after the other in the order of issue, each atomically. It decides nothing that is
/// not in a plan.
///
/// Two halves: `prepare` may allocate and take its time; `issue` does neither.
class Executor {
 public:
  /// All that is passed in outlives the executor.
  /// @param role  of a thread that runs tasks on it
  Executor(const Topology& machine, DeviceBackend& backend, Clock& clock, ThreadRole role = {})
      : machine_(&machine), backend_(&backend), clock_(&clock), role_(role) {}

  [[nodiscard]] const Topology& machine() const { return *machine_; }
  [[nodiscard]] DeviceBackend& backend() const { return *backend_; }
  [[nodiscard]] Clock& clock() const { return *clock_; }
  [[nodiscard]] const ThreadRole& role() const { return role_; }

  /// Binds a plan to its data and hands it to the backend.
  /// @param bindings  [streams]
  /// @param name      of the batch in messages
  /// @param overlaps  as in `BoundPlan`
  /// @errors InvalidInput: a plan of another machine. Otherwise as `DeviceBackend::prepare`.
  [[nodiscard]] Expected<PreparedBatch> prepare(ExecutionPlan plan, std::vector<StreamBinding> bindings,
                                                std::string name = "a batch", Marks marks = Marks::Needed,
                                                bool overlaps = false);

  /// Prepares the next run of a batch ahead of its issue, which is then a store to memory: see `BackendBatch::arm`.
  /// Useful for the next one or two batches, since a batch held at a gate slightly delays the start of others. Does
  /// nothing if the batch is under way.
  void arm(PreparedBatch& batch);

  /// The same for a batch that will be issued directly behind another one: see `BackendBatch::arm_behind`.
  void arm_behind(const PreparedBatch& before, PreparedBatch& batch);

  /// Queues a batch behind all batches issued before; it starts when they are finished.
  /// @param job       that this run is part of
  /// @param earliest  start, on the clock; past: at once
  /// @errors InvalidInput: its last run is still under way; an admitted run owns the machine and the batch is none of
  /// its own.
  [[nodiscard]] Expected<void> issue(PreparedBatch& batch, const JobLabel& job = {}, Duration earliest = {});
  /// Whether the last run is finished; lets the backend work. `synchronize` returns how the run ended.
  [[nodiscard]] bool query(PreparedBatch& batch);
  /// Issues a batch, waits for it and reviews it.
  /// @errors as `issue` and `synchronize`.
  [[nodiscard]] Expected<BatchResult> run(PreparedBatch& batch);
  /// Waits for the last run, and reviews it.
  /// @errors InvalidInput: it was never issued. Kernel: a kernel of it failed. Machine: the machine or the host did.
  [[nodiscard]] Expected<BatchResult> synchronize(PreparedBatch& batch);
  /// Like `synchronize`, without the review, which can be done while another batch runs: overruns and measured times
  /// are not known yet.
  [[nodiscard]] Expected<BatchResult> wait_for(PreparedBatch& batch);

  /// Result of the review of a run.
  struct Review {
    int overruns = 0;
    std::optional<BrokenBound> broken;   ///< it took longer than its latest finish; nothing where none was promised
    Duration start{};                    ///< of the run, on the clock
    const Timeline* measured = nullptr;  ///< from the start, where it was asked for and the run did not fail; valid
                                         ///< until the next review
  };
  /// Reviews the last run; empty if it was reviewed before. @pre it was waited for, and the batch is not armed again.
  /// @param with_times  whether the measured times are wanted; for batches of an admitted run
  [[nodiscard]] Review review(PreparedBatch& batch, bool with_times = false) const;

  /// Whether an issued batch is not finished.
  [[nodiscard]] bool busy() const { return backend_->busy(); }
  /// Undoes `arm`; does nothing if the batch is not armed.
  void disarm(PreparedBatch& batch);

  /// While it lives, the machine belongs to an admitted run: only batches prepared through it are issued.
  class AdmittedRun {
   public:
    explicit AdmittedRun(Executor& executor);
    AdmittedRun(const AdmittedRun&) = delete;  // there is one at a time
    AdmittedRun& operator=(const AdmittedRun&) = delete;
    ~AdmittedRun();
    /// Prepares a plan that was admitted: a run of it that takes longer than its latest finish is reported.
    /// @pre the plan has a latest finish.
    /// @errors as `Executor::prepare`.
    /// @param overlaps  as in `BoundPlan`
    [[nodiscard]] Expected<PreparedBatch> prepare(const ExecutionPlan& plan, std::vector<StreamBinding> bindings,
                                                  std::string name = "a batch", bool overlaps = false);

   private:
    Executor* executor_;
  };

 private:
  const Topology* machine_;
  DeviceBackend* backend_;
  Clock* clock_;
  ThreadRole role_;
  std::uint64_t runs_ = 0;   // admitted ones so far
  std::uint64_t owner_ = 0;  // the admitted run that owns the machine; 0: none
};

}  // namespace tutti::internal
