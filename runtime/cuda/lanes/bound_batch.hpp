#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/core/clock_fit.hpp"
#include "runtime/core/command_list.hpp"
#include "runtime/cuda/base/tool_ranges.hpp"
#include "runtime/cuda/gates/doorbell.hpp"
#include "runtime/cuda/gates/signal.hpp"
#include "runtime/cuda/lanes/bound_devices.hpp"

namespace tutti::internal::cuda {

/// A point in a lane that the GPU records as an event. The conductor records it too where the stream also sets a
/// signal. The signal shows that the command is finished; the event right behind it shows when, on the clock of its
/// GPU.
struct Point {
  Event event;  ///< none: nothing is noted
  std::uint32_t lane = 0;
  Count step = 0;                         ///< of the lane's progress, from 1; 0: no signal
  Duration seen{};                        ///< by the conductor
  std::vector<std::uint32_t> watchers{};  ///< GPUs whose memory has the signal too: lanes there wait for the point

  [[nodiscard]] bool is_watched_on(std::uint32_t place) const {
    return std::find(watchers.begin(), watchers.end(), place) != watchers.end();
  }
};

/// The points of a command.
struct CommandPoints {
  Event start;  ///< of a command that is released, where no gate notes it, or its signals are seen too late to say when
  HostSignal<TimerValue> released;  ///< where a gate notes the start: set by the gate's kernel
  Point end;
  Point leg_end;  ///< of the first leg of a staged copy
};

/// One queue of a batch, and the stream that it has for a run.
struct Lane {
  int device = 0;
  std::uint32_t place = 0;       ///< of its device in `BoundBatch::devices`
  std::vector<Point*> points{};  ///< with signals, in order
  HostSignal<Count> progress{};  ///< steps of all runs so far; set by the stream
  cudaStream_t stream = nullptr;
  bool lent = false;
  Count base = 0;  ///< its progress before this run
  Event ended{};   ///< recorded at its last point, before the signal: a run that follows waits for it; where GPUs keep
                   ///< time
  bool begun = false;  ///< in this run it waits for the end of the run before already; of a run that follows one
};

/// Whether the driver says that the GPU of a lane is broken. @pre the lane has a stream
[[nodiscard]] bool is_broken(const Lane& lane);

/// A GPU of a batch, and its timer in a run.
struct BatchDevice {
  int device = 0;
  GpuClock* timer = nullptr;           ///< where gates wait for it
  std::optional<StartSignal> start{};  ///< where gates wait for the timer; the conductor opens it
  HostSignal<TimerValue> began{};      ///< its timer at the start of a run that follows another one
  DeviceSignalBoard board{};
  std::vector<Signal<Count>> progress{};  ///< [lanes] of lanes that lanes here wait for; set by their streams
  TimerLine line{};                       ///< its timer
  Duration doubt{};                       ///< of `line`
};

/// A batch and all that its runs have on the GPUs of this host: commands, lanes, points, signals.
///
/// Three classes work on it, each in its own part of a run: `Enqueuer` puts the commands behind closed gates,
/// `GateOpener` opens the gates and sees the progress, `RunTimes` reads times and errors afterwards.
///
/// Threads: the *caller's* thread arms, submits and reviews a run; the *conductor* leads it; the *driver's* thread
/// calls host work. A run passes from the caller to the conductor in `Conductor::submit` and back in
/// `GateOpener::finished`, a release and an acquire each, so that only the members with two writers are atomic:
///
/// | member | written by |
/// |---|---|
/// | `lanes[].stream`, `lent`, `base`, `begun`, `run`, `job`, `follows` | the caller, before it submits |
/// | `devices[].line`, `doubt` | the caller, before it submits |
/// | `Point::seen`, `opened`, `stored`, `enqueued` | the conductor, until the end |
/// | `result.start`, `finish`, `held_up`, `gates_late` | the conductor, until the end |
/// | `result.overruns`, `held_up`, `copies_held_up` | the caller, afterwards |
/// | `result.error`, by `note` | whichever thread fails first |
/// | all others | the caller, once, in `make` |
///
/// A batch that overlaps has no conductor: its caller does all of that.
class BoundBatch {
 public:
  /// @errors as `DeviceBackend::prepare`. @pre the bindings fit.
  [[nodiscard]] static Expected<std::unique_ptr<BoundBatch>> make(BoundDevices& backend, BoundPlan bound);
  BoundBatch(const BoundBatch&) = delete;  // its lanes know its points by their address
  BoundBatch& operator=(const BoundBatch&) = delete;

  /// Begins a run: the next number, no result. For the caller.
  void begin_run();
  /// Notes a failure of this run; the first one is reported. For any thread.
  void note(Error error);
  /// Notes the failure of a call that enqueues. On a broken GPU every call fails: what broke it is found later.
  void note_call(Error error);
  void note(const Expected<void>& called) {
    if (!called) note_call(called.error());
  }
  /// Notes the failure of a call for a command.
  void note(cudaError_t status, const char* call, const Command& command);
  /// Whether some command of this run is not in its queue.
  [[nodiscard]] bool is_broken() const { return broken_; }

  /// Whether nothing holds a stream: each command is enqueued when it is due.
  [[nodiscard]] bool timed_by_host() const { return gate == GateKind::HostTimed; }
  /// Whether gates wait for the timers of their GPUs.
  [[nodiscard]] bool timed_by_gpus() const { return gate == GateKind::DeviceTimer; }

  [[nodiscard]] const CommandStream& stream_of(const Command& command) const {
    return bound.plan.batch.streams()[command.stream];
  }

  BoundDevices& backend;
  const BoundPlan bound;
  const RangeName shown_as;  ///< its name in tools
  const GateKind gate;       ///< the backend's; of a batch that overlaps none, whatever that is
  const CommandList list;
  std::vector<CommandPoints> points;  // [commands]
  std::vector<Lane> lanes;            // [lanes]
  std::vector<BatchDevice> devices;   // of the lanes
  SignalBoard board;
  std::vector<HostSignal<Count>> gates;  // [gates] the run that is let through; set by the conductor
  std::vector<Duration> opened;          // [gates] when the conductor opened it in this run
  Duration stored{};                     // when the conductor gave the start of the run to the GPUs
  Duration enqueued{};                   // when the command of a batch that overlaps was; 0: another batch
  Count run = 0;                         // counter; gates wait for its value
  std::uint64_t job = 0;                 // that the next run is part of; its number
  const BoundBatch* follows = nullptr;   // this run starts where that one's ends, without the host
  BatchResult result;

 private:
  BoundBatch(BoundDevices& the_backend, BoundPlan the_bound);
  Expected<void> prepare();
  std::uint32_t place_of(int device);
  Expected<void> make_board();
  Expected<void> make_device(BatchDevice& device);
  Expected<void> make_points(std::uint32_t position);
  Expected<void> make_point(Point& point, Mark mark, std::uint32_t lane);
  void find_watchers(std::uint32_t position);

  std::atomic<bool> failed_{false};  // this run's error is being written, or was
  std::atomic<bool> broken_{false};
};

}  // namespace tutti::internal::cuda
