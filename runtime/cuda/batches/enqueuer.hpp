#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "runtime/cuda/base/copies.hpp"
#include "runtime/cuda/batches/served_copies.hpp"
#include "runtime/cuda/lanes/bound_batch.hpp"
#include "runtime/cuda/lanes/captured_kernel.hpp"

namespace tutti::internal::cuda {

/// Enqueues the commands of a batch into the streams of its lanes, behind closed gates.
///
/// At a mark of the command list the stream records an event. Where the host or a lane waits it also sets signals: one
/// that the conductor sees, and one in the memory of every GPU of which a lane waits for it. A conductor that sleeps is
/// called at the end of each lane.
///
/// Threads: the caller's thread calls everything but `enqueue_due`, which the conductor calls where the host keeps
/// time. Then the caller enqueues nothing, so no two threads enqueue commands of one run. Kernels are launched by the
/// thread that enqueues; host work runs in the driver's thread, which reads its own command and notes failures. Nothing
/// here allocates after `make`, failures aside.
class Enqueuer {
 public:
  /// @param batch  outlives it
  /// @errors as `DeviceBackend::prepare`
  [[nodiscard]] static Expected<std::unique_ptr<Enqueuer>> make(BoundBatch& batch);
  Enqueuer(const Enqueuer&) = delete;  // host work knows it by its address
  Enqueuer& operator=(const Enqueuer&) = delete;

  /// Closes the gates of a run and enqueues as many commands as the hardware queues take ahead of them; none where the
  /// host keeps time. @pre `BoundBatch::begin_run`, and all lanes have streams
  void arm();
  /// Lets servers look for the copies of a run that the host makes; the run is submitted next.
  /// @param start  of the run, at the earliest
  void expect_copies(Duration start) { served_.expect(start); }
  /// As `ServedCopies::paused`.
  [[nodiscard]] Duration copies_paused() const { return served_.paused(); }
  /// Enqueues the rest of a run that the conductor leads; nothing where the host keeps time.
  void enqueue_rest();
  /// Enqueues what is due, where the host keeps time. For the conductor.
  /// @param since  the start of the run
  void enqueue_due(Duration since);
  /// Runs of commands that this run of the batch has enqueued, in their order; the next one may be on its way. For any
  /// thread.
  [[nodiscard]] std::uint32_t enqueued() const { return enqueued_.load(std::memory_order_acquire); }
  /// Whether the enqueuing of a run may not come back: code of a kernel is called, or a queue may be full.
  [[nodiscard]] bool may_block() const { return may_block_; }
  /// Whether all commands of the run are in their queues.
  [[nodiscard]] bool has_enqueued_all() const { return enqueued() == batch_.list.runs.size(); }
  /// From now on no host work begins. What a lost GPU, or another one, still has in its queues knows an enqueuer by its
  /// address, so one that was abandoned is never destroyed.
  void abandon() { abandoned_ = true; }

 private:
  /// The kernels of a command.
  struct BoundKernel {
    std::vector<BoundCall> calls;
    std::vector<DeviceCall> on_gpu;  ///< none: host work
    CapturedKernel captured;
  };
  /// Argument of the host function that runs host work.
  struct HostWork {
    Enqueuer* enqueuer;
    std::uint32_t position;
  };
  /// The pinned chunks that a staged copy goes through, and the events that keep its legs apart.
  struct Ring {
    static constexpr std::size_t kChunks = 4;
    std::size_t chunk = 0;
    PooledMemory memory;
    HostSignal<Count> first_filled;  // the run whose first chunk is there, set by the first leg
    std::array<Event, kChunks> filled, drained;
  };
  /// A part of a staged copy.
  struct Chunk {
    std::size_t index, offset, bytes;
    std::byte* data;  ///< in the ring
  };

  explicit Enqueuer(BoundBatch& batch) : batch_(batch) {}
  Expected<void> prepare();
  void bind_copies(std::uint32_t run);
  Expected<void> make_ring(std::uint32_t position);
  Expected<void> bind_kernel(std::uint32_t position);

  void enqueue_to(std::size_t end);
  [[nodiscard]] bool last_has_ended() const;
  void enqueue_next();
  void enqueue(std::uint32_t run);
  void release_command(std::uint32_t position);
  void hold_by_memory(const Command& command);
  void hold_at_gate(std::uint32_t position);
  void wait_for_run_before(Lane& lane, const Command& command);
  void wait_for(const Point& point, std::uint32_t position);
  void do_work(std::uint32_t run);
  void note_point(const Point& point, const Command& command);
  void copy(std::uint32_t run);
  void copy_rows(std::uint32_t position);
  void copy_by_kernel(std::uint32_t position);
  void copy_inline(std::uint32_t position);
  void copy_staged(std::uint32_t position);
  void fill(const Command& command, const Ring& ring, const Chunk& chunk);
  void drain(const Command& command, const Ring& ring, const Chunk& chunk);
  void launch(std::uint32_t position);
  static void run_host_work(void* work);
  void kernel_failed(const Command& command, std::string_view kernel, std::string_view what);
  template <class Call>
  bool call_kernel(const Command& command, const BoundCall& kernel, const Call& call);
  /// Whether a staged copy's second leg waits for this chunk by a signal.
  [[nodiscard]] bool by_signal(const Chunk& chunk) const { return chunk.index == 0 && !batch_.timed_by_host(); }

  BoundBatch& batch_;
  std::vector<Copies> copies_;                // [runs of commands] of several copies
  std::vector<std::unique_ptr<Ring>> rings_;  // [commands] of staged copies
  std::vector<BoundKernel> kernels_;          // [commands]
  std::vector<HostWork> host_work_;           // [commands]
  bool may_block_ = false;
  std::size_t ahead_ = 0;                   // runs of commands that are enqueued before the run is submitted
  std::atomic<std::uint32_t> enqueued_{0};  // of them, in this run of the batch
  std::atomic<bool> abandoned_{false};
  ServedCopies served_{batch_, abandoned_};
};

}  // namespace tutti::internal::cuda
