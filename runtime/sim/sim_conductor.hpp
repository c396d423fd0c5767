#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "runtime/core/led_arrays.hpp"
#include "runtime/core/led_run.hpp"
#include "runtime/core/spsc_ring.hpp"
#include "runtime/sim/sim_batch.hpp"
#include "runtime/sim/sim_operation.hpp"

namespace tutti::internal {

/// A run that the simulated machine leads on its virtual clock.
///
/// Its time is its own: when the host calls, everything that was due by then has happened, each at its instant,
/// whatever the host did meanwhile. A batch opened at t ends after the machine's `dispatch` and the plan's length; its
/// bytes move and its kernels run when its end is seen.
///
/// Where jobs overlap, a region opened at t begins after `dispatch`, for which the conductor does nothing else, and
/// copies share the machine's bandwidths as those of `SimOperation` do.
class SimLedRun final : public LedRun {
 public:
  /// A prepared batch for each buffer set; where jobs overlap, an operation.
  struct BatchSets {
    std::vector<std::unique_ptr<SimBatch>> batches;
    std::vector<std::unique_ptr<SimOperation>> operations;
  };

  /// @param batches  [batches of all tasks] the plans of the set, prepared
  /// @param ahead    [tasks] runs that are armed ahead
  SimLedRun(SimBackend& backend, LedSet set, std::vector<BatchSets> batches, std::vector<std::uint64_t> ahead);
  SimLedRun(const SimLedRun&) = delete;  // its conductor has views of its arrays
  SimLedRun& operator=(const SimLedRun&) = delete;

  [[nodiscard]] Duration host_away() const override { return host_away_; }
  bool arm_some() override;
  void begin(Duration epoch) override;
  [[nodiscard]] std::optional<LedRecord> take() override;
  void give_back(std::uint32_t task) override;
  [[nodiscard]] bool begin_input(std::uint32_t task, std::uint64_t run) override;
  void end_input(std::uint32_t task, std::uint64_t run) override;
  [[nodiscard]] std::uint64_t* runs_taken(std::uint32_t task) override { return &taken_[task]; }
  void stop() override;
  [[nodiscard]] bool is_over() override;
  /// Why a kernel failed; its job has no record.
  [[nodiscard]] std::optional<Error> fault() override;
  [[nodiscard]] Ns now() override;
  [[nodiscard]] Duration next_look() override;

 private:
  /// What the conductor sees of the run.
  struct SimBoard {
    SimLedRun* run;

    [[nodiscard]] bool is_armed(std::uint32_t task, std::uint64_t number) const { return number < run->armed_[task]; }
    [[nodiscard]] std::uint64_t given_back(std::uint32_t task) const { return run->given_back_[task]; }
    void open(std::uint32_t batch, std::uint64_t number) const { run->open(batch, number); }
    [[nodiscard]] bool has_ended(std::uint32_t batch, std::uint64_t number) const {
      return run->has_ended(batch, number);
    }
    void note_taken(std::uint32_t task, std::uint64_t runs) const {
      std::atomic_ref(run->taken_[task]).store(runs, std::memory_order_release);
    }
    [[nodiscard]] LedInput input(std::uint32_t task, std::uint64_t number) const {
      return input_of(run->inputs_[task], number);
    }
    void settle() const {}
    [[nodiscard]] bool write(const LedRecord& record) const { return run->write(record); }
    [[nodiscard]] bool is_stopped() const { return run->stopped_; }
    [[nodiscard]] bool is_given_up() const { return false; }
    void keep_awake() const {}
  };

  using Conductor = std::variant<SetConductor<SimBoard>, OverlapConductor<SimBoard>>;

  [[nodiscard]] Conductor make_conductor();
  void open(std::uint32_t batch, std::uint64_t run);
  [[nodiscard]] bool has_ended(std::uint32_t batch, std::uint64_t run);
  /// Lets a batch move its bytes and run its kernels. @return whether it has not failed
  [[nodiscard]] bool is_right(const BackendBatch& batch);
  /// Lets everything happen by now to regions under way.
  void run_operations();
  /// When something happens to the batch that is open, or to a region under way.
  [[nodiscard]] Ns next_of_machine() const;
  /// Drops leave room for the records of all armed runs: a job that had the machine is in a record if the host takes
  /// all before it arms.
  [[nodiscard]] bool write(LedRecord record);
  /// When the conductor does something next. @pre not over
  [[nodiscard]] Ns next_instant() const;
  /// The conductor sees at once what the host has done.
  void look();
  /// Lets everything happen that is due by now.
  void advance();

  SimBackend* backend_;
  LedSet set_;
  std::vector<BatchSets> batches_;                                          // [batches of all tasks]
  std::vector<std::uint64_t> ahead_, armed_, given_back_, taken_, inputs_;  // [tasks] inputs: the words of `input_of`
  Duration host_away_;
  Ns last_deadline_;
  std::uint64_t room_;           // for records
  SpscRing<LedRecord> records_;  // its threads are one here
  LedArrays arrays_;
  std::vector<LedRuns> runs_;
  std::vector<std::uint64_t> indices_;
  std::vector<LedFlight> flights_;  // [sets of all tasks] where jobs overlap
  Conductor conductor_;
  Duration epoch_{};
  bool begun_ = false, over_ = false, stopped_ = false;
  std::optional<Error> fault_;
  Ns at_ = 0;  // the conductor's instant
  struct UnderWay {
    SimOperation* operation;
    Ns gives_up;  // on it

    [[nodiscard]] double next_event() const { return operation->next_event(); }
  };
  std::vector<UnderWay> operations_;
  SimBatch* running_ = nullptr;  // the batch that is open
  Ns starts_ = 0, ends_ = 0;     // that batch
  Ns gives_up_ = 0;              // on it
};

}  // namespace tutti::internal
