#pragma once
#include "runtime/core/clock.hpp"
#include "runtime/core/clock_fit.hpp"
#include "runtime/cuda/gates/signal.hpp"

namespace tutti::internal::cuda {

/// Time from the store that starts a run until its first gates open, where GPUs keep time: by then all GPUs have seen
/// it.
inline constexpr Duration kLead = std::chrono::microseconds{3};
/// How long before its start a run may be given to the GPUs: what their timers may drift until then is below 1 us.
inline constexpr Duration kMostAhead = std::chrono::milliseconds{5};
/// Largest expected error of a GPU's timer: see `launch_doorbell`.
inline constexpr Duration kMostWrong = std::chrono::microseconds{3};

/// The timer of a GPU, set to the host's clock: kernels read it, and gates wait for it.
///
/// For the thread that arms and submits batches.
class GpuClock {
 public:
  /// @errors Machine: the GPU does not answer.
  [[nodiscard]] static Expected<GpuClock> make(int device, const Clock& clock);

  /// Asks the GPU for its timer, some 30 us; returns whether it answered in time. It may not where its queue is
  /// occupied. Allocates nothing.
  bool ask(Duration patience);
  /// Asks if the timer will soon not be known well enough.
  /// @param wrong  largest growth of its error since it was last asked
  void refresh(Duration wrong = std::chrono::microseconds{1});

  /// Adds an observation: a thread of the GPU saw at `timer` a store that the host made at `stored`.
  void add_seen(Duration stored, TimerValue timer) { fit_.add_seen(stored, static_cast<std::int64_t>(timer)); }
  [[nodiscard]] const TimerLine& line() const { return fit_.line(); }
  /// Delay of gates while the timer was not asked for long: a gate may open late, never before its instant.
  [[nodiscard]] Duration doubt() const;

 private:
  GpuClock(int device, const Clock& clock, Stream stream, SignalBoard board);

  int device_;
  const Clock* clock_;
  Stream stream_;
  SignalBoard board_;
  HostSignal<Count> asked_;                    // how many answers the host has asked for
  std::span<SignalLine<TimerValue>> answers_;  // set by the kernel; 0: not yet
  ClockFit fit_;
  Duration next_{};  // when it may be asked again
};

}  // namespace tutti::internal::cuda
