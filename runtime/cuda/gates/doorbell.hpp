#pragma once
#include "model/base/units.hpp"
#include "runtime/cuda/gates/signal.hpp"

namespace tutti::internal::cuda {

/// The only kernel of a GPU that polls host memory for the start of a run.
///
/// Kernels that poll host memory slow down whatever runs beside them: 100 copies of 64 KiB take 0.38 ms alone, 2.9 ms
/// beside eight such kernels, 12 ms beside 24 (H200). Kernels that poll their own GPU's memory cost nothing. So gates
/// look at a signal in device memory (`StartSignal`), and one kernel at a time passes the host's stores on to such
/// signals: run after run in the order of the stores, whichever run was armed first.
class Doorbell {
 public:
  /// @param stream  of its own.
  [[nodiscard]] static Expected<Doorbell> make(int device, cudaStream_t stream);

  [[nodiscard]] int device() const { return device_; }
  /// Enqueues the kernel for one more run. For the thread that arms.
  [[nodiscard]] cudaError_t expect();
  /// Sets a signal in device memory, by the kernel, to a value that is not 0. For the conductor.
  /// @return  which ring that was, for `seen`
  std::uint64_t ring(Signal<TimerValue> target, TimerValue value);
  /// Value of the GPU's timer when the kernel saw a ring; 0: the ring was there before the kernel.
  [[nodiscard]] TimerValue seen(std::uint64_t ring) const;

 private:
  Doorbell(int device, cudaStream_t stream, SignalBoard board);
  [[nodiscard]] StartOrder& order(std::uint64_t ring) const;

  int device_;
  cudaStream_t stream_;
  SignalBoard board_;
  std::span<StartOrder> orders_;  // of the board, used in turn
  std::uint64_t expected_ = 0, rung_ = 0;
};

/// Signal that the gates of a batch wait for on one GPU: the instant of its timer at which a run starts. The host sets
/// it through the doorbell; of a run that follows another one without the host, the first stream that sees that one's
/// end.
class StartSignal {
 public:
  /// @param stream  of the same GPU, in which nothing waits for a gate
  [[nodiscard]] static Expected<StartSignal> make(Doorbell& bell, cudaStream_t stream);

  /// Closes the gates of the next run. @pre the run before is over
  [[nodiscard]] cudaError_t close();
  /// Holds a stream until the run has started and the timer is `offset` past its start.
  /// @param released  set to the timer when the stream goes on
  [[nodiscard]] cudaError_t hold(cudaStream_t stream, Duration offset, HostSignal<TimerValue> released) const;
  /// Starts the run at an instant of the timer. For the conductor.
  /// @param ahead  by more than `kLead`
  void open(TimerValue start, bool ahead = false);
  /// Value of the timer when the GPU saw the host's start; 0: not known, or the host did not start the run.
  [[nodiscard]] TimerValue seen() const { return linked_ ? 0 : bell_->seen(ring_); }

  /// Closes the gates of the next run, which streams start themselves. @pre the run before is over
  void close_linked();
  /// Starts such a run, where no other stream has yet, and holds the stream as `hold` does.
  /// @param began  set to the timer at which the run starts, by the stream that starts it
  /// @pre the stream waits for all that the run follows
  [[nodiscard]] cudaError_t start_and_hold(cudaStream_t stream, Duration offset, HostSignal<TimerValue> began,
                                           HostSignal<TimerValue> released) const;

 private:
  StartSignal(Doorbell& bell, DeviceSignalBoard board)
      : bell_(&bell), board_(std::move(board)), start_(board_.take<TimerValue>()) {}

  Doorbell* bell_;
  DeviceSignalBoard board_;
  Signal<TimerValue> start_;  // set by the doorbell's kernel, or by the first stream of a linked run
  std::uint64_t run_ = 0, ring_ = 0;
  bool linked_ = false;
};

}  // namespace tutti::internal::cuda
