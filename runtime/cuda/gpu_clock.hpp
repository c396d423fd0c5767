#pragma once
#include "runtime/core/clock.hpp"
#include "runtime/core/clock_fit.hpp"
#include "runtime/cuda/handles.hpp"
#include "runtime/cuda/pinned_memory.hpp"

namespace tutti::cuda {

/// From the store that starts a run until its first gates open, where GPUs keep time: by then all of them have seen it.
inline constexpr Duration kLead = std::chrono::microseconds{3};
/// What a GPU's timer may be wrong by: see `launch_doorbell`.
inline constexpr Duration kMostWrong = std::chrono::microseconds{3};

/// The timer of a GPU, set to the host's clock: kernels read it, and gates wait for it.
///
/// For the thread that arms and submits batches.
class GpuClock {
 public:
  /// @errors Machine: the GPU does not answer.
  [[nodiscard]] static Expected<GpuClock> make(int device, const Clock& clock);

  /// Asks the GPU for its timer, some 30 us; whether it answered in time, which it may not where its queue is taken.
  /// Allocates nothing.
  bool ask(Duration patience);
  /// Asks where the timer will not be known well enough a little later.
  void refresh();

  /// The host stored something at that instant, and a thread of the GPU saw it when the timer stood there.
  void add_seen(Duration stored, std::uint64_t timer) { fit_.add_seen(stored, static_cast<std::int64_t>(timer)); }
  [[nodiscard]] const TimerLine& line() const { return fit_.line(); }
  /// By how much gates open late rather than early, since it was not asked for long: nothing starts before its instant.
  [[nodiscard]] Duration doubt() const;
  /// Gives nothing back: for a GPU that hangs.
  void release() { board_.release(); }

 private:
  GpuClock(int device, const Clock& clock, Stream stream, PinnedMemory signals)
      : device_(device), clock_(&clock), stream_(std::move(stream)), board_(std::move(signals)) {}

  int device_;
  const Clock* clock_;
  Stream stream_;
  PinnedMemory board_;  // how many answers were asked for, then the answers
  ClockFit fit_;
  Duration next_{};  // when it may be asked again
};

}  // namespace tutti::cuda
