#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/planner.hpp"
#include "runtime/core/backend.hpp"
#include "runtime/core/broken_bound.hpp"
#include "runtime/core/clock.hpp"
#include "sched/tasks/wcet.hpp"

namespace tutti {

class Executor;

/// A batch that is ready to run, again and again. Move-only; when it goes, what it started has run through.
class PreparedBatch {
 public:
  [[nodiscard]] const Timeline& plan() const { return plan_; }
  /// What happened when in the last run. @pre it was synchronized.
  [[nodiscard]] Timeline measured() const { return batch_->measured(); }

 private:
  /// What was promised of it, and the memory to see why it was not kept.
  struct Promised {
    BatchPromise promise;
    Timeline measured;
  };

  friend class Executor;
  PreparedBatch(std::unique_ptr<BackendBatch> batch, Timeline plan, std::uint64_t run)
      : batch_(std::move(batch)), plan_(std::move(plan)), run_(run) {}

  std::unique_ptr<BackendBatch> batch_;
  Timeline plan_;
  std::optional<Promised> promised_;
  std::uint64_t run_;    // the admitted run that it belongs to; 0: none
  bool issued_ = false;  // ever
  bool under_way_ = false;
  bool reviewed_ = true;  // the last run
};

/// Runs batches on one machine, one after the other in the order of issue, each atomically.
///
/// Two halves: `prepare` may allocate and take its time; `issue` does neither.
class Executor {
 public:
  /// All that is passed in outlives the executor.
  Executor(const Topology& machine, const Planner& planner, DeviceBackend& backend, Clock& clock)
      : machine_(&machine), planner_(&planner), backend_(&backend), clock_(&clock) {}

  [[nodiscard]] const Topology& machine() const { return *machine_; }
  [[nodiscard]] const Planner& planner() const { return *planner_; }
  [[nodiscard]] DeviceBackend& backend() const { return *backend_; }
  [[nodiscard]] Clock& clock() const { return *clock_; }

  /// Plans a batch and hands it to the backend.
  /// @param bindings  [streams]
  /// @param name      of the batch in messages
  /// @errors as `DeviceBackend::prepare`.
  [[nodiscard]] Expected<PreparedBatch> prepare(const Batch& batch, std::vector<StreamBinding> bindings,
                                                std::string name = "a batch", Marks marks = Marks::Needed);

  /// Gets the next run of a batch ready ahead of its issue, which is then a store to memory: see `BackendBatch::arm`.
  /// Worth it for the batch or two that come next, since what waits at a gate slows down the others' start a little.
  /// Nothing where it is under way.
  void arm(PreparedBatch& batch);

  /// Puts a batch behind everything that was issued before; it starts when that is finished.
  /// @errors InvalidInput: its last run is still under way; an admitted run owns the machine and the batch is none of
  /// its own.
  [[nodiscard]] Expected<void> issue(PreparedBatch& batch);
  /// Whether the last run is finished; lets the backend work. How it ended, `synchronize` tells.
  [[nodiscard]] bool query(PreparedBatch& batch);
  /// Waits for the last run, and reviews it.
  /// @errors InvalidInput: it was never issued. Kernel: a kernel of it failed. Machine: the machine or the host did.
  [[nodiscard]] Expected<BatchResult> synchronize(PreparedBatch& batch);
  /// The same without the review, which can be done while something else runs: overruns and measured times are not
  /// known yet.
  [[nodiscard]] Expected<BatchResult> wait_for(PreparedBatch& batch);

  /// What a run showed beside its end.
  struct Review {
    int overruns = 0;
    std::optional<BrokenBound> broken;  ///< it took longer than its latest finish; nothing where none was promised
  };
  /// Of the last run; nothing where that was reviewed before. @pre it was waited for, and the batch is not armed again.
  [[nodiscard]] Review review(PreparedBatch& batch) const;

  /// Whether something that was issued is still to finish.
  [[nodiscard]] bool busy() const { return backend_->busy(); }
  /// Undoes `arm`; nothing where the batch is not armed.
  void disarm(PreparedBatch& batch);

  /// While it lives, the machine belongs to an admitted run: only batches prepared through it are issued.
  class AdmittedRun {
   public:
    explicit AdmittedRun(Executor& executor);
    AdmittedRun(const AdmittedRun&) = delete;  // there is one at a time
    AdmittedRun& operator=(const AdmittedRun&) = delete;
    ~AdmittedRun();
    /// Prepares a batch with the plan that it was admitted with, and what was promised of it.
    [[nodiscard]] Expected<PreparedBatch> prepare(const PlannedBatch& planned, std::vector<StreamBinding> bindings,
                                                  std::string name = "a batch");

   private:
    Executor* executor_;
  };

 private:
  [[nodiscard]] Expected<PreparedBatch> prepare(const Batch& batch, Timeline plan, std::vector<StreamBinding> bindings,
                                                std::string name, std::uint64_t run, Marks marks);
  const Topology* machine_;
  const Planner* planner_;
  DeviceBackend* backend_;
  Clock* clock_;
  std::uint64_t runs_ = 0;   // admitted ones so far
  std::uint64_t owner_ = 0;  // the admitted run that owns the machine; 0: none
};

}  // namespace tutti
