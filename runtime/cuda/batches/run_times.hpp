#pragma once
#include <vector>

#include "runtime/core/command_marks.hpp"
#include "runtime/cuda/lanes/bound_batch.hpp"

namespace tutti::internal::cuda {

/// Reads when the commands of a finished run started and ended, and which kernels took too long.
///
/// The events of each GPU are set to the host's clock by the signal that was seen soonest after its event. Starts are
/// events too, or timer values that the gates set where the GPU's timer is set to the host's clock. A conductor that
/// sleeps sees signals some 50 us late: where starts are timer values the events are set to the clock by them, and
/// otherwise the delay that cannot be excluded counts as time in which the host held the run up.
///
/// Threads: the caller's alone, after `GateOpener::finished`. `measured` allocates, the rest does not.
class RunTimes {
 public:
  /// @param batch  outlives it
  explicit RunTimes(BoundBatch& batch);

  /// Forgets the run before. For a run that is armed.
  void clear();
  /// Reads the events and timers of a run that did not break, and counts overruns into its result. Some microseconds.
  void read();
  /// The plan with the times of the run that was read, or of one that failed, as far as they are known.
  [[nodiscard]] Timeline measured() const;

 private:
  /// Where the events of a GPU stand on the host's clock.
  struct Origin {
    const Event* event = nullptr;  ///< they are measured from this one
    double at = 0;                 ///< host clock at the event, ns; the latest possible
    double earliest = 0;           ///< the same, the earliest possible
  };

  void set_origins();
  void set_by_signals();
  template <class EarliestStart>
  void find_earliest(const EarliestStart& earliest_start);
  void set_by_timers();
  void set_by_gates();
  void count_doubt();
  void learn_timers();
  void count_overruns();
  [[nodiscard]] std::uint32_t before_in_lane(std::uint32_t position) const;
  // ns on the host's clock.
  [[nodiscard]] double instant(const Event& event, std::uint32_t lane) const;
  [[nodiscard]] double start_of(std::uint32_t position) const;
  [[nodiscard]] double end_of(std::uint32_t position) const;
  [[nodiscard]] std::vector<CommandTimes> times() const;

  BoundBatch& batch_;
  std::vector<std::uint32_t> before_;   // [kernel runs] the command that ends where one starts; kNone
  std::vector<std::uint32_t> openers_;  // the first command of each lane that has a gate
  std::vector<Origin> origins_;         // [devices]
};

}  // namespace tutti::internal::cuda
