#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/command_list.hpp"
#include "runtime/cuda/pinned_memory.hpp"
#include "runtime/cuda/stage.hpp"

namespace tutti::cuda {

/// One batch on the GPUs of this host.
///
/// Armed, its commands lie in the streams of its lanes, held at gates: words of pinned memory that the conductor stores
/// to. After each transfer and kernel the stream notes the time (an event) and writes its progress into another word,
/// which the conductor sees, and streams that wait for it.
/// Words tell when something is finished; events tell when it began and ended, on the clock of their GPU, which is set
/// to the host's by the word that came in soonest after its event.
class CudaBatch final : public BackendBatch, private Performance {
 public:
  /// @errors as `DeviceBackend::prepare`. @pre the bindings fit.
  [[nodiscard]] static Expected<std::unique_ptr<CudaBatch>> make(Stage& stage, ExecutableBatch batch);
  CudaBatch(const CudaBatch&) = delete;  // the stage knows it by its address
  CudaBatch& operator=(const CudaBatch&) = delete;
  ~CudaBatch() override;

  void arm() override;
  void disarm() override;
  void submit(Duration earliest) override;
  bool poll() override;
  void wait() override;
  BatchResult result() const override { return result_; }
  Timeline measured() const override;

 private:
  enum class State : int { Idle, Armed, Submitted, Finished };
  /// A point in a lane that is noted twice: by the GPU, as an event, and by the conductor, when it sees the word that
  /// the stream writes next.
  struct Mark {
    Event event;
    std::uint32_t lane = 0;
    std::uint32_t step = 0;  ///< of the lane's progress, from 1
    Duration seen{};
  };
  /// One queue while the batch has it.
  struct Lane {
    int device = 0;
    cudaStream_t stream = nullptr;
    bool lent = false;
    std::uint32_t base = 0;    ///< its progress before this run
    std::uint32_t seen = 0;    ///< marks of this run that the conductor has seen
    std::vector<Mark*> marks;  ///< in order
  };
  /// What a command needs beside its description.
  struct Work {
    Event start;                    ///< absent: the command before it in its lane ends there
    std::uint32_t follows = kNone;  ///< that command
    Mark end;                       ///< of a command that closes
    Mark leg_end;                   ///< of the first leg of a staged copy
    const KernelForms* kernel = nullptr;
    KernelLaunch launch;
  };
  /// What the driver hands to host work.
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
    std::array<Event, kChunks> filled, drained;
  };

  CudaBatch(Stage& stage, ExecutableBatch batch);
  Expected<void> prepare();
  Expected<void> make_work(std::uint32_t position);
  Expected<void> make_mark(Mark& mark, std::uint32_t lane);
  [[nodiscard]] std::uint32_t before_in_lane(std::uint32_t position) const;
  Expected<void> make_ring(std::uint32_t position);
  Expected<void> bind_kernel(std::uint32_t position);
  void count_ahead();

  void arm_on(bool shared_lanes);
  bool take_lanes(bool shared_lanes);
  void give_lanes_back();
  void enqueue(std::uint32_t position);
  void enqueue_to(std::size_t end);
  void hold(const Lane& lane, std::size_t word, std::uint32_t value);
  void wait_for(const Mark& mark, const Command& command);
  void set_mark(const Mark& mark, const Command& command);
  void do_work(std::uint32_t position);
  void copy_staged(std::uint32_t position);
  void launch(std::uint32_t position);
  void launch_host_work(std::uint32_t position);
  static void run_host_work(void* work);
  void kernel_failed(std::uint32_t stream, std::string_view what);
  void note(Error error);
  /// A call for a command went wrong.
  void note(cudaError_t status, const char* call, const Command& command);

  // The conductor's.
  Duration earliest() const override { return earliest_; }
  void begin(Duration now) override;
  bool advance(Duration now) override;
  void finish() override;
  void open_gates(Duration now);
  void see_progress(Duration now);
  bool is_lost(Duration now);
  [[nodiscard]] std::string first_unfinished() const;

  void settle();
  void count_overruns();
  /// Start and end of a command on the host's clock.
  struct Interval {
    double start = 0, end = 0;
  };
  [[nodiscard]] std::vector<Interval> intervals() const;
  [[nodiscard]] std::atomic_ref<std::uint32_t> word(std::size_t index) const;
  [[nodiscard]] CUdeviceptr word_address(std::size_t index) const;
  [[nodiscard]] std::size_t progress_word(std::uint32_t lane) const { return list_.gates.size() + lane; }
  [[nodiscard]] const CommandStream& stream_of(const Command& command) const {
    return batch_.batch.streams()[command.stream];
  }
  [[nodiscard]] bool timed_by_host() const { return stage_->gate == GateKind::HostTimed; }

  Stage* stage_;
  ExecutableBatch batch_;
  CommandList list_;
  std::vector<Work> work_;                    // [commands]
  std::vector<Lane> lanes_;                   // [lanes]
  std::vector<Opening> openings_;             // [gates] in order of time
  std::vector<std::unique_ptr<Ring>> rings_;  // [commands] of staged copies
  std::vector<HostWork> host_work_;           // [commands]
  PinnedMemory board_;                        // a word a gate, then one a lane, each in a cache line of its own
  std::uint32_t ahead_ = 0;                   // commands that the hardware queues have room for
  Duration limit_{};                          // after which a run is given up

  std::atomic<State> state_{State::Idle};
  std::uint32_t run_ = 0;       // counts; what gates wait for
  std::uint32_t enqueued_ = 0;  // commands of this run so far
  Duration earliest_{};
  std::size_t next_opening_ = 0;
  std::uint32_t unseen_ = 0;         // marks of all lanes
  Duration next_look_{};             // at what the driver says
  std::atomic<bool> failed_{false};  // this run's error is being written, or was
  std::atomic<bool> broken_{false};  // some command of this run is not in its queue
  BatchResult result_;
};

}  // namespace tutti::cuda
