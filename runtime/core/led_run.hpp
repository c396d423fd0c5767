#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/backend.hpp"
#include "runtime/core/led_arrays.hpp"
#include "runtime/core/overlap_conductor.hpp"
#include "runtime/core/set_conductor.hpp"
#include "sched/tasks/led_set.hpp"

namespace tutti::internal {

/// A set whose jobs the machine itself leads, in the order of its policy, while the host only arms runs ahead: one job
/// at a time, or operations of several.
struct LedSet {
  bool by_deadline = false;
  std::vector<LedTask> tasks;
  LedWays ways;                                            ///< how its jobs overlap; without operations: they do not
  std::vector<LedBatch> batches;                           ///< [batches of all tasks]
  std::vector<std::vector<std::vector<BoundPlan>>> plans;  ///< [tasks][buffer sets][batches of a job]
  Duration host_away{};  ///< how long the host may be away: so much is armed ahead; 0: as much as queues take, for
                         ///< 100 ms at most, since what no job has had runs out at the end
};

/// Whether a conductor can lead all batches of a set. For backends.
/// @errors InvalidInput: a command that only the host can do, with its batch, its stream and the reason.
[[nodiscard]] Expected<void> check_led(const LedSet& set);

/// Armed runs of each task that its queues hold. Lanes of its batches on one GPU share queues, the first with the
/// first; where jobs overlap, those of the regions of an operation do. Each copy takes an entry, and so do all kernels,
/// gates and marks between two copies together. Kernels of users that record copies take more: then a run on GPUs holds
/// fewer than this.
/// @return [tasks]
[[nodiscard]] std::vector<std::uint64_t> most_armed(const LedSet& set);

/// Batches of a task's jobs whose lanes share queues: from a batch of the job on, so many.
struct LedQueueGroup {
  std::uint32_t first = 0, count = 0;
};
/// @return those of a task, in the order of their batches: all in one, or where jobs overlap one for each operation.
[[nodiscard]] std::vector<LedQueueGroup> queue_groups(const LedSet& set, std::size_t task);

/// How many runs of each task are armed ahead, so that the host may be away for as long as the set says. For backends.
/// @param most  [tasks] armed runs that the queues of a task hold
/// @return [tasks]
/// @errors InvalidInput: the queues of a task hold fewer; the sentence says for how long they last.
[[nodiscard]] Expected<std::vector<std::uint64_t>> runs_ahead(const LedSet& set, std::span<const std::uint64_t> most);

/// How long the host may be away while so many runs of each task are armed ahead: a host that arms all of them, and
/// comes back so much later, finds no job dropped for want of a run. `kNever`: all jobs are armed. For backends.
/// @param ahead  [tasks] as `runs_ahead`
[[nodiscard]] Duration host_away(const LedSet& set, std::span<const std::uint64_t> ahead);

/// A run that the machine leads. For one thread of the host.
class LedRun {
 public:
  virtual ~LedRun() = default;

  /// How long the host may be away: until the first of the queues that are full now would be empty.
  [[nodiscard]] virtual Duration host_away() const = 0;
  /// Arms as little as it can: a lane, at most. Allocates nothing. @return whether more is wanted ahead
  virtual bool arm_some() = 0;
  /// Arms runs, as many as are wanted ahead.
  void arm() {
    while (arm_some()) continue;
  }
  /// Starts the run's time. @param epoch  its start on the clock, not before now @pre armed
  virtual void begin(Duration epoch) = 0;
  /// The next record, in the order in which jobs ended; nothing: none has ended since.
  [[nodiscard]] virtual std::optional<LedRecord> take() = 0;
  /// The buffers of the oldest run of a task that has not given them back are free.
  virtual void give_back(std::uint32_t task) = 0;
  /// The host puts the input of a run into its buffers from now on, until `end_input`. One run of a task at a time, in
  /// their order, without those that jobs have had. @pre nothing is under way in these buffers, and nobody reads them
  /// @return whether it may: otherwise a job has the run, and reuses what the buffers hold, or has just tried to
  [[nodiscard]] virtual bool begin_input(std::uint32_t task, std::uint64_t run) = 0;
  virtual void end_input(std::uint32_t task, std::uint64_t run) = 0;
  /// Counts the runs that jobs of a task have had, where they overwrite: a word that is set before anything of the run
  /// happens. Any thread may look at it; it lasts as long as this.
  [[nodiscard]] virtual std::uint64_t* runs_taken(std::uint32_t task) = 0;
  /// No other job is released from when the conductor sees it: between jobs, or as the next one starts.
  virtual void stop() = 0;
  /// Whether the conductor has ended; its last records may be there still.
  [[nodiscard]] virtual bool is_over() = 0;
  /// What has broken it: then nothing more comes.
  [[nodiscard]] virtual std::optional<Error> fault() = 0;
  /// The start on the timer of the GPU that leads; nothing: the simulated machine does. @pre begun
  [[nodiscard]] virtual std::optional<std::uint64_t> start_on_gpu() const { return std::nullopt; }
  /// Now, on what the instants of records are on. @pre begun
  [[nodiscard]] virtual Ns now() = 0;
  /// When the host must look again, so that queues stay full and ends are seen within `kLongestLook`; on the clock.
  [[nodiscard]] virtual Duration next_look() = 0;
};

}  // namespace tutti::internal
