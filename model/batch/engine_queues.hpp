#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/batch/batch.hpp"
#include "model/batch/fixed_shares.hpp"
#include "model/sharing/bandwidth_model.hpp"

namespace tutti::internal {

/// How the transfers that are active together share the machine.
enum class RateRule : std::uint8_t {
  MaxMin,     ///< weighted max-min among the active ones, new at every event
  Allocated,  ///< each keeps the share it would have if all streams were always active
  Static,     ///< each keeps the share it would have if all streams of its application were always active
};

/// A part of a command that runs at once: a time that passes, or bytes that flow. A transfer is set-up (time), pipeline
/// fill (flow over the first leg of a staged copy) and data (flow), as far as it has them; a kernel is one time. Only a
/// command that has nothing to do is a time of 0. One cache line each.
struct alignas(64) Step {
  double amount = 0;  ///< ns, or bytes
  double begin = 0;   ///< when it ran last, in the run's direction of time
  double end = 0;
  double unpaid = 0;  ///< ns, of a copy's first step: what copies before it in its queue paid once for all, and it pays
                      ///< where they have no bytes
  std::uint32_t stream = 0;
  std::uint32_t flow = kNone;  ///< kind in the bandwidth model; kNone: a time
  bool kernel = false;
  bool data = false;         ///< its bytes are those that arrive
  bool first = false;        ///< of its command
  bool last = false;         ///< of its command
  bool queue_first = false;  ///< of its queue
  bool queue_last = false;
};

/// A batch as queues of steps, with the flows among them in a bandwidth model.
///
/// Streams whose copies one engine issues are merged into one *queue*: their transfers back to back in the order of the
/// batch (`Batch::order`), then their kernels in that order. The gate's cost precedes an engine queue's first command,
/// and each command has its own (`SetupTimes`): times that pass. A handover precedes the kernels behind an engine
/// queue's copies, a kernel without copies on a GPU that others use, a staged copy next to others and those next to it,
/// a staged copy to an engine that other queues use too, and each copy that lands where copies of other queues do. The
/// memory is kept between loads.
class EngineQueues {
 public:
  struct EngineQueue {
    std::uint32_t begin, end;  ///< its steps; at least one
  };

  /// @pre the batch was made for this machine.
  void load(const Topology& machine, Basis basis, const Batch& batch, RateRule rule, BandwidthModel& bandwidth);

  [[nodiscard]] std::span<const EngineQueue> queues() const { return {queues_.data(), queue_count_}; }
  [[nodiscard]] std::size_t step_count() const { return step_count_; }
  [[nodiscard]] const Step& step(std::size_t position) const { return steps_[position]; }
  [[nodiscard]] Step& step(std::size_t position) { return steps_[position]; }
  /// Locks of a step's command while it runs: its engine, and a second one or the last hop; or its GPU; otherwise
  /// kNone.
  [[nodiscard]] std::array<std::uint32_t, 2> locks(const Step& step) const;
  /// Whether two queues may want one lock.
  [[nodiscard]] bool contended() const { return contended_; }
  /// Whether one engine queue has all transfers of a copy engine.
  [[nodiscard]] bool merges() const { return merging_ != Merging::Off; }
  /// Locks are numbered below this: engines, then GPUs by vertex, then last hops by link.
  [[nodiscard]] std::size_t lock_count() const { return owner_.size(); }

 private:
  void grow_for(const Topology& machine, std::size_t streams);
  void merge_streams(const Batch& batch);
  std::uint32_t owner_of(EngineId engine, std::uint32_t stream);
  std::uint32_t join_owners(std::array<EngineId, 2> engines, std::uint32_t stream);
  void add_transfer(std::uint32_t queue, std::uint32_t stream, BandwidthModel& bandwidth);
  void add_time(std::uint32_t stream, double ns);
  [[nodiscard]] std::uint32_t flow_of(std::uint32_t queue, std::uint32_t stream, bool data,
                                      BandwidthModel& bandwidth) const;
  void add_kernel(std::uint32_t queue, std::uint32_t stream);
  void find_lock_users();
  void find_lock_users_of(std::uint32_t queue);
  template <class Do>
  void each_use(const StreamWork& work, Do what);
  [[nodiscard]] double take_handover(const StreamWork& work);
  [[nodiscard]] double share_of_gpu(std::uint32_t lock) const;
  [[nodiscard]] double take_lock_handovers(std::uint32_t stream) const;
  [[nodiscard]] std::array<std::uint32_t, 2> locks(const StreamWork& copy) const;
  [[nodiscard]] double take_opening();
  [[nodiscard]] double take_first(std::uint32_t stream);
  [[nodiscard]] double take_turn(std::uint32_t stream);
  void claim(std::uint32_t queue, std::uint32_t lock);
  void next_epoch();

  Merging merging_ = Merging::On;
  bool shares_engines_ = false;
  bool contended_ = false;
  Basis basis_ = Basis::Nominal;
  const SetupTimes* setup_ = nullptr;  // of the machine
  double handover_ = 0, turn_ = 0;     // ns
  unsigned classes_ = 0;               // of copies of the queue that is being made, a bit each
  double firsts_ = 0;                  // ns that they have cost
  bool handed_over_ = false;           // from its copies to its kernels
  std::uint32_t last_copy_ = kNone;    // stream of the queue that is being made, so far
  double opening_ = 0;                 // ns from the gate to the first command of the queue that is being made
  double chunk_ = 0;                   // of a staged copy, bytes
  std::uint32_t engine_count_ = 0, vertex_count_ = 0;
  std::span<const StreamWork> work_;
  std::span<const CommandStream> streams_;
  RateRule rule_ = RateRule::MaxMin;
  FixedShares shares_;

  // Sized for the batch; the vectors are longer where an earlier batch needed more.
  std::uint32_t queue_count_ = 0, step_count_ = 0;
  std::vector<EngineQueue> queues_;
  std::vector<Step> steps_;

  /// How many copies or kernels use a lock: all, and those of the queue that is being made.
  struct LockUsers {
    std::uint32_t all = 0, of_queue = 0;
  };
  std::vector<LockUsers> lock_users_;  // [locks], where there are handovers

  std::uint32_t epoch_ = 0;
  std::vector<std::uint64_t> owner_;     // [locks] epoch << 32 | queue
  std::vector<std::uint32_t> queue_of_;  // [streams]
  std::vector<std::uint32_t> next_;      // [streams] within its queue
  std::vector<std::uint32_t> head_;      // [queues]
  std::vector<std::uint32_t> tail_;      // [streams] of the queue that a stream heads
};

}  // namespace tutti::internal
