#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "runtime/core/led_run.hpp"
#include "runtime/cuda/gates/gpu_clock.hpp"
#include "runtime/cuda/led/led_recorder.hpp"
#include "runtime/cuda/led/led_streams.hpp"

namespace tutti::internal::cuda {

class GpuArrays;

/// A run that a GPU leads, the *leader*: a kernel of one thread waits for releases by the GPU's timer, opens the gates
/// of all GPUs by stores, and sees the ends of lanes in its own memory, where they store them.
///
/// Each lane of a batch is recorded once for each buffer set, from its gate to the mark of its end, as few calls; to
/// arm a run is to make these. The batches of a task's jobs share streams, those of other tasks have their own: queues
/// are first-in, first-out, and which task is next is not known yet. Where jobs overlap, the regions of an operation
/// share a stream, and other operations have their own.
///
/// While it runs, a kernel of the program's own that waits for the whole GPU (`cudaDeviceSynchronize`, `cudaFree`)
/// waits for the end of the run.
class GpuConductor final : public LedRun {
 public:
  /// @errors as `DeviceBackend::lead`; no GPU of the set reaches all others, more streams than a GPU has.
  [[nodiscard]] static Expected<std::unique_ptr<GpuConductor>> make(BoundDevices& backend, LedSet set);
  GpuConductor(const GpuConductor&) = delete;  // its streams are lent to it
  GpuConductor& operator=(const GpuConductor&) = delete;
  /// Ends the run, if it has not ended, and lets out what is armed.
  ~GpuConductor() override;

  [[nodiscard]] Duration host_away() const override { return host_away_; }
  bool arm_some() override;
  void begin(Duration epoch) override;
  [[nodiscard]] std::optional<LedRecord> take() override;
  void give_back(std::uint32_t task) override;
  [[nodiscard]] bool begin_input(std::uint32_t task, std::uint64_t run) override;
  void end_input(std::uint32_t task, std::uint64_t run) override;
  [[nodiscard]] std::uint64_t* runs_taken(std::uint32_t task) override { return &taken_by_jobs_[task].word; }
  void stop() override { HostSignal<std::uint64_t>(&run_words_->stop).set(1); }
  [[nodiscard]] bool is_over() override;
  [[nodiscard]] std::optional<Error> fault() override { return fault_; }
  [[nodiscard]] std::optional<std::uint64_t> start_on_gpu() const override { return epoch_; }
  [[nodiscard]] Ns now() override;
  [[nodiscard]] Duration next_look() override;

 private:
  /// A lane of a batch, recorded for each buffer set.
  struct Lane {
    LedStream on;
    std::vector<RecordedLane> sets{};
  };
  struct Task {
    std::vector<Lane> lanes{};  ///< of its batches, in their order
    std::uint64_t depth = 1;    ///< runs that are armed ahead
    std::uint64_t armed = 0, ended = 0;
    std::size_t armed_lanes = 0;  ///< of the run behind the armed ones
  };
  GpuConductor(BoundDevices& backend, LedSet set) : backend_(backend), set_(std::move(set)) {}
  using Lists = std::vector<std::vector<CommandList>>;  // [tasks][batches]

  Expected<void> prepare();
  Expected<void> find_leader(const Lists& lists);
  void find_vigils(const Lists& lists);
  Expected<void> load_kernels();
  [[nodiscard]] bool sets_gates_apart(const Lists& lists) const;
  Expected<void> lend_streams(const Lists& lists);
  Expected<void> make_words(const Lists& lists);
  void make_far(const std::map<int, DeviceSignalBoard*>& boards);
  Expected<void> record(const Lists& lists);
  Expected<void> find_depths();
  Expected<void> make_host_words();
  void add_releases(GpuArrays& arrays, LedReleases& releases, std::span<const LedTask> tasks, std::size_t sets) const;
  void add_operations(GpuArrays& arrays, LedOperations& operations, std::span<const LedTask> tasks,
                      std::size_t sets) const;
  void add_work(GpuArrays& arrays, LedWork& work, std::span<const LedTask> tasks,
                std::span<LedGate* const> gates) const;
  void add_rehearsal(GpuArrays& arrays);
  Expected<void> make_arrays();
  void launch();
  void arm_lane(std::size_t task);
  bool note(cudaError_t status, const char* call, int device);
  void note_end(const LedRecord& record);
  void end_conductor();
  void let_out();
  void abandon();
  [[nodiscard]] cudaError_t status_of_lanes(int& device) const;
  /// Runs of a task that its queues hold.
  [[nodiscard]] static std::uint64_t capacity_of(const Task& task);

  BoundDevices& backend_;
  LedSet set_;
  int leader_ = 0;
  std::optional<GpuClock> clock_;  // the leader's
  std::optional<LedStreams> lent_;
  cudaStream_t conductor_ = nullptr;  // of these; null: none yet
  std::vector<Task> tasks_;
  std::size_t arming_ = 0;                  // task whose run is being armed, or was last
  std::vector<LedBatchWords> batch_words_;  // [batches of all tasks]
  struct Gate {
    LedGate* words;
    int device;
    std::uint32_t task;
  };
  std::vector<Gate> gates_;  // of all batches, one for each GPU of each
  /// What keeps the links of a GPU awake, as the conductor does for the leader.
  struct Vigil {
    int device;
    cudaStream_t stream = nullptr;
    LedGate* until = nullptr;
    LedFar far{};
  };
  std::vector<Vigil> vigils_;  // on all GPUs of the set but the leader
  std::vector<DeviceSignalBoard> boards_;
  SignalBoard board_;                                   // words and records that the host reaches
  std::span<LedTaskWords> task_words_;                  // of it, [tasks]
  std::span<SignalLine<std::uint64_t>> taken_by_jobs_;  // of it, [tasks]; the conductor sets them
  LedRunWords* run_words_ = nullptr;                    // of it
  std::span<LedSlot> records_;                          // of it
  LedEnd* ended_ = nullptr;                             // [lanes of all batches]
  LedGate* rehearsed_gate_ = nullptr;                   // of the leader; no lane waits at it
  PooledMemory arrays_;                                 // that the conductor works on
  LedWork work_, rehearsal_;
  std::optional<PoolRun> pool_run_;  // while it is armed
  Duration host_away_{};
  bool reads_ = false;       // the program reads what jobs leave, or fills what they had
  std::uint64_t epoch_ = 0;  // on the leader's timer
  bool launched_ = false;
  bool over_ = false;
  std::uint64_t taken_ = 0;
  std::optional<Error> fault_;
};

}  // namespace tutti::internal::cuda
