#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/core/clock_fit.hpp"
#include "runtime/core/command_marks.hpp"
#include "runtime/cuda/bound_devices.hpp"
#include "runtime/cuda/copies.hpp"
#include "runtime/cuda/doorbell.hpp"
#include "runtime/cuda/pinned_memory.hpp"

namespace tutti::internal::cuda {

/// One batch on the GPUs of this host.
///
/// The commands of an armed batch lie in the streams of its lanes, held at gates: signals in pinned memory that the
/// conductor stores to, or in device memory that a `Doorbell` stores to. At a mark of the command list the stream
/// records the time (an event). Where the host or a lane waits, it also writes its progress into other signals: one
/// that the conductor sees, and one in the memory of every GPU of which a lane waits for it. A signal shows that a
/// command is finished. The event right behind it shows when, on the clock of its GPU, which is set to the host's by
/// the signal that was seen soonest after its event. Starts are events too, or timer values written by the gate where
/// the GPU's timer is set to the host's clock.
class CudaBatch final : public BackendBatch, private GatedRun {
 public:
  /// @errors as `DeviceBackend::prepare`. @pre the bindings fit.
  [[nodiscard]] static Expected<std::unique_ptr<CudaBatch>> make(BoundDevices& bound, ExecutableBatch batch);
  CudaBatch(const CudaBatch&) = delete;  // the bound devices know it by its address
  CudaBatch& operator=(const CudaBatch&) = delete;
  ~CudaBatch() override;

  void arm() override;
  void disarm() override;
  void submit(Duration earliest) override;
  bool poll() override;
  void wait() override;
  BatchResult result() const override { return result_; }
  void review() override;
  Timeline measured() const override;

 private:
  enum class State : int { Idle, Armed, Submitted, Finished };
  /// A point in a lane that the GPU records as an event. The conductor records it too where the stream also writes a
  /// signal.
  struct Point {
    Event event;  ///< none: nothing is noted
    std::uint32_t lane = 0;
    std::uint32_t step = 0;  ///< of the lane's progress, from 1; 0: no signal
    Duration seen{};
    std::vector<std::uint32_t> watchers{};  ///< GPUs whose memory has the signal too: lanes there wait for the point

    [[nodiscard]] bool is_watched_on(std::uint32_t place) const {
      return std::find(watchers.begin(), watchers.end(), place) != watchers.end();
    }
  };
  /// One queue while the batch has it.
  struct Lane {
    int device = 0;
    std::uint32_t place = 0;  ///< of its device in `devices_`
    cudaStream_t stream = nullptr;
    bool lent = false;
    std::uint32_t base = 0;      ///< its progress before this run
    std::uint32_t seen = 0;      ///< signals of this run that the conductor has seen
    std::vector<Point*> points;  ///< with signals, in order
  };
  /// A GPU of the batch, and how its clocks stand in this run.
  struct Device {
    int device = 0;
    GpuClock* timer = nullptr;         ///< where gates wait for it
    std::optional<StartSignal> start;  ///< where gates wait for the timer
    DeviceMemory progress;             ///< a signal a lane: progress of the lanes that lanes here wait for
    TimerLine line;                    ///< its timer
    Duration doubt{};                  ///< of `line`
    const Event* origin = nullptr;     ///< its events are measured from this one
    double origin_at = 0;              ///< host clock at `origin`, ns
  };
  /// State of a command beside its description.
  struct Work {
    Event start;                  ///< of a command that is released, where no gate notes it
    std::uint32_t stamp = kNone;  ///< its place on the board, where the gate notes it
    Point end;
    Point leg_end;                 ///< of the first leg of a staged copy
    const Point* noted = nullptr;  ///< the next point of its last lane: it has ended by then
    std::uint32_t step = 0;        ///< of that lane's progress, at the next signal
    const KernelForms* kernel = nullptr;
    const DeviceKernel* on_gpu = nullptr;
    KernelLaunch launch;
  };
  /// Argument of the host function that runs host work.
  struct HostWork {
    CudaBatch* batch;
    std::uint32_t position;
  };
  struct Opening {
    Duration at{};
    std::uint32_t gate = 0;
  };
  /// The pinned chunks that a staged copy goes through, and the events that keep its legs apart.
  struct Ring {
    static constexpr std::size_t kChunks = 4;
    std::size_t chunk = 0;
    PinnedMemory memory;
    std::uint32_t signal = 0;  // index of the signal that holds the run whose first chunk is there
    std::array<Event, kChunks> filled, drained;
  };

  CudaBatch(BoundDevices& bound, ExecutableBatch batch);
  Expected<void> prepare();
  Expected<void> make_work(std::uint32_t position);
  Expected<void> make_point(Point& point, Mark mark, std::uint32_t lane);
  std::uint32_t place_of(int device);
  Expected<void> make_device(Device& device);
  void find_watchers(std::uint32_t position);
  Expected<void> make_signal_board();
  void bind_copies(std::uint32_t run);
  void find_who_tells();
  [[nodiscard]] std::uint32_t before_in_lane(std::uint32_t position) const;
  Expected<void> make_ring(std::uint32_t position);
  Expected<void> bind_kernel(std::uint32_t position);
  void arm_on(bool shared_lanes);
  bool take_lanes(bool shared_lanes);
  void give_lanes_back();
  void enqueue(std::uint32_t run);
  void enqueue_to(std::size_t end);
  void release(std::uint32_t position);
  void hold_at_gate(std::uint32_t position);
  void hold_by_memory(const Command& command);
  void wait_for(const Point& point, std::uint32_t position);
  void note_point(const Point& point, const Command& command);
  void do_work(std::uint32_t run);
  void copy(std::uint32_t run);
  void copy_staged(std::uint32_t position);
  void write_signal(const Lane& lane, CUdeviceptr signal, std::uint32_t value);
  void launch(std::uint32_t position);
  void launch_host_work(std::uint32_t position);
  static void run_host_work(void* work);
  void kernel_failed(std::uint32_t stream, std::string_view what);
  void note(Error error);
  /// Notes the failure of a call for a command.
  void note(cudaError_t status, const char* call, const Command& command);

  // Called by the conductor.
  Duration earliest() const override { return earliest_; }
  void begin(Duration now) override;
  bool advance(Duration now) override;
  void finish() override;
  void open_gates(Duration now);
  void see_progress(Duration now);
  bool is_lost(Duration now);
  [[nodiscard]] std::string first_unfinished() const;

  void refresh_timers();
  void set_origins();
  void learn_timers();
  void count_overruns();
  // ns on the host's clock.
  [[nodiscard]] double instant(const Event& event, std::uint32_t lane) const;
  [[nodiscard]] double start_of(std::uint32_t position) const;
  [[nodiscard]] double end_of(std::uint32_t position) const;
  [[nodiscard]] std::vector<CommandTimes> times() const;
  [[nodiscard]] std::atomic_ref<std::uint32_t> signal(std::size_t index) const;
  [[nodiscard]] CUdeviceptr signal_address(std::size_t index) const;
  [[nodiscard]] std::size_t progress_signal(std::uint32_t lane) const { return list_.gates.size() + lane; }
  /// The progress of a lane in the memory of a GPU.
  [[nodiscard]] CUdeviceptr progress_on(std::uint32_t place, std::uint32_t lane) const;
  /// Signal that holds the run whose first chunk of a staged copy is there.
  [[nodiscard]] CUdeviceptr first_filled(const Ring& ring) const;
  /// When a command was released, on the timer of its GPU; null: its gate does not record it.
  [[nodiscard]] std::uint64_t* released_at(std::uint32_t position) const;
  [[nodiscard]] const CommandStream& stream_of(const Command& command) const {
    return batch_.batch.streams()[command.stream];
  }
  [[nodiscard]] bool timed_by_host() const { return bound_->gate == GateKind::HostTimed; }
  [[nodiscard]] bool timed_by_gpus() const { return bound_->gate == GateKind::DeviceTimer; }

  BoundDevices* bound_;
  ExecutableBatch batch_;
  CommandList list_;
  std::vector<Work> work_;                    // [commands]
  std::vector<Lane> lanes_;                   // [lanes]
  std::vector<Device> devices_;               // of the lanes
  std::vector<Copies> copies_;                // [runs] of several copies
  std::vector<std::uint32_t> before_;         // [kernel runs] the command that ends where one starts; kNone
  std::vector<Opening> openings_;             // [gates] in order of time
  std::vector<std::unique_ptr<Ring>> rings_;  // [commands] of staged copies
  std::vector<HostWork> host_work_;           // [commands]
  PinnedMemory board_;                        // signal board: a cache line per gate, lane, stamp, staged copy
  std::uint32_t stamps_ = 0, staged_ = 0;     // of them
  std::size_t ahead_ = 0;                     // runs that the hardware queues have room for
  Duration limit_{};                          // after which a run is given up

  std::atomic<State> state_{State::Idle};
  std::uint32_t run_ = 0;       // counter; gates wait for its value
  std::uint32_t enqueued_ = 0;  // of the list's runs, so far
  Duration earliest_{};
  std::size_t next_opening_ = 0;
  std::uint32_t unseen_ = 0;         // signals of all lanes
  Duration looked_{};                // at the signals, last
  Duration next_look_{};             // at what the driver says
  std::atomic<bool> failed_{false};  // this run's error is being written, or was
  std::atomic<bool> broken_{false};  // some command of this run is not in its queue
  BatchResult result_;
};

}  // namespace tutti::internal::cuda
