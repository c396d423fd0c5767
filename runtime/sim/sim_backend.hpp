#pragma once
#include <map>
#include <memory>
#include <vector>

#include "model/machine/topology.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/kernel_registry.hpp"
#include "runtime/core/led_run.hpp"
#include "runtime/core/plain_backend.hpp"
#include "runtime/sim/sim_copies.hpp"

namespace tutti::internal {

class SimBatch;
class SimLedRun;
class SimOperation;
class SimMemory;

/// A simulated machine: its memories and GPUs are pieces of host memory, its copy engines copy real bytes over the
/// planned intervals, its kernels are host functions.
///
/// It works inside `poll` and `wait`, in the order in which batches were submitted. On a virtual clock everything
/// happens at its planned instant. On a real clock the host may be too slow to play its part; a batch that ends more
/// than `kHostLag` after its plan reports that.
///
/// Batches that overlap (`BoundPlan::overlaps`) are one copy or kernel each: copies that are under way at a time share
/// the machine's guaranteed bandwidths as they start and stop. To submit one takes the machine's `dispatch` of the
/// caller's time, so that a thread that leads several does one thing at a time.
class SimBackend final : public PlainBackend {
 public:
  /// How far a batch may end behind its plan before the host counts as too slow.
  static constexpr Duration kHostLag = std::chrono::milliseconds{5};

  SimBackend(const Topology& machine, const KernelRegistry& kernels, Clock& clock);
  ~SimBackend();

  [[nodiscard]] std::string_view name() const override { return "sim"; }
  [[nodiscard]] bool busy() const override { return !submitted_.empty() || !overlapping_.empty(); }
  [[nodiscard]] Duration next_event() const override;
  [[nodiscard]] Duration tolerated_lag() const override { return clock_->runs_by_itself() ? kHostLag : Duration{}; }
  void begin_run(Duration) override { copies_.load(); }
  void share_as(const Topology* machine) override {
    run_overlapping();
    copies_.share_as(machine != nullptr ? *machine : machine_, as_ns(clock_->now()));
  }
  [[nodiscard]] Expected<Buffer> allocate(VertexId where, Bytes size) override;
  /// Memory of the host for any place, whose room it does not take.
  [[nodiscard]] Expected<Buffer> wrap(VertexId where, std::span<std::byte> memory,
                                      std::shared_ptr<void> owner) override;
  [[nodiscard]] Expected<std::unique_ptr<BackendBatch>> prepare(BoundPlan bound) override;
  /// On a virtual clock alone.
  [[nodiscard]] Expected<std::unique_ptr<LedRun>> lead(LedSet set) override;

 private:
  friend class SimBatch;
  friend class SimLedRun;
  friend class SimOperation;

  /// The error of a run that the host saw end so long after it did.
  [[nodiscard]] static Error too_slow(Duration lag);

  /// Checks a plan with its data, completes it, and makes room for a run of it.
  [[nodiscard]] Expected<void> accept(BoundPlan& bound);
  /// Lets the next event of the oldest unfinished batch happen.
  void run_next_event();
  /// Whether the next event is due, or time does not pass by itself.
  [[nodiscard]] bool next_event_is_due() const;
  /// Lets everything happen by now to batches that overlap.
  void run_overlapping();
  [[nodiscard]] std::size_t next_overlapping() const;

  Topology machine_;
  const KernelRegistry* kernels_;
  Clock* clock_;
  std::shared_ptr<SimMemory> memory_;
  SimCopies copies_;                        // of batches that overlap
  std::vector<SimBatch*> submitted_;        // oldest first; room for every prepared batch
  std::vector<SimOperation*> overlapping_;  // under way; room as above
  std::size_t prepared_ = 0;
  Duration free_at_{};  // when all that was submitted is finished, as planned
};

}  // namespace tutti::internal
