#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/base/ids.hpp"
#include "model/batch/execution_plan.hpp"

namespace tutti::internal {

/// Cause of a job that took longer than its bound. Among equal excesses the cause listed first is named.
enum class BoundCause : std::uint8_t {
  Trigger,   ///< an external release came late
  Release,   ///< the dispatcher was free, and yet saw late that the job was ready
  Gate,      ///< a stream started too late after its gate's instant
  Blocking,  ///< other jobs ran longer than their Wcet while it waited
  Transfer,  ///< a copy was slower than at guaranteed bandwidths
  Kernel,    ///< a kernel took longer than its worst
  Host,      ///< work on the host took longer than declared
  Dispatch,  ///< time went by between the dispatcher and the batches: before, between and behind them
  Foreign,   ///< a copy was slow while another process used the same GPU
  Unknown,
};
inline constexpr std::size_t kBoundCauses = 10;

/// Name of a cause in reports: "trigger", "release", ...
[[nodiscard]] std::string_view to_string(BoundCause cause);

/// A job that exceeded its bound, or a batch that exceeded its latest finish.
struct BrokenBound {
  BoundCause cause = BoundCause::Unknown;
  Duration excess{};              ///< beyond the bound
  std::optional<TaskId> by = {};  ///< of `Blocking`: the task whose jobs took the most beyond their Wcet

  friend bool operator==(const BrokenBound&, const BrokenBound&) = default;
};

/// How much time each cause took from a job.
class Excesses {
 public:
  /// Ignores an excess that is not above 0.
  void add(BoundCause cause, Duration excess);
  /// Raises the excess of a cause to at least this.
  void raise(BoundCause cause, Duration excess);
  [[nodiscard]] Duration of(BoundCause cause) const { return of_[static_cast<std::size_t>(cause)]; }
  /// The cause with the largest excess; Unknown if there is none.
  [[nodiscard]] BoundCause largest() const;

 private:
  std::array<Duration, kBoundCauses> of_{};
};

/// Start and end of a command.
struct Extent {
  Duration start{}, end{};
};

/// The guarantees of a batch, in a form that a measured run can be compared with without allocation.
///
/// Only a run that took longer than the latest finish is explained. Every command is followed from the measured end of
/// its last wait: its gate, or the command before it in its queue, on its engine or on its GPU. Time beyond its planned
/// time (guaranteed bandwidths, worst kernel times) is the excess of a transfer, a kernel or host work. Time between
/// its gate and its start is the gate's excess.
class BatchPromise {
 public:
  /// @param plan  at guaranteed bandwidths and worst kernel times, with its latest finish
  explicit BatchPromise(const ExecutionPlan& plan);

  [[nodiscard]] const LatestFinish& latest() const { return latest_; }
  /// The cause with the largest excess in a late run. Allocates nothing.
  ///
  /// Each stream that ends after the batch's latest finish adds up the excesses on the path to its end. A late gate, a
  /// long kernel and long host work count on any path, since the latest finish of all streams rests on them. A
  /// completion that the host saw late counts as `Dispatch`.
  /// @param measured  of the same shape as the plan
  [[nodiscard]] BoundCause cause_of(const Timeline& measured);

 private:
  /// One transfer or kernel.
  struct Command {
    std::uint32_t stream = 0;
    bool kernel = false;
    bool host = false;    ///< a kernel on a cpu
    bool opener = false;  ///< the first of its queue: it waits for a gate
    std::uint32_t queue = 0;
    std::array<std::uint32_t, 2> locks{};  ///< engines or a GPU; kNone
    Duration opens{};                      ///< of an opener: a later start is late; the gate's cost is planned
    Duration planned{};  ///< its length; from its start for an opener, else from the end of its last wait
  };
  /// Excesses on the path to the end of a command. Signed: a fast copy makes up for a slow one.
  struct Path {
    Duration gate{}, transfer{}, kernel{}, host{};
    Duration end{};  ///< of the command
  };

  void find_commands(const ExecutionPlan& plan);
  /// Calls visit(command, path to the end of the command that it waited for last) in the order of a timeline.
  template <class Visit>
  void follow(const Timeline& timeline, const Visit& visit);

  std::vector<Command> commands_;    // queue by queue
  std::vector<std::uint32_t> last_;  // [streams] its last command
  LatestFinish latest_;
  // State of the run that is explained:
  std::vector<std::uint32_t> order_;     // of commands, by their start
  std::vector<Extent> extents_;          // [commands] as far as they are ordered by them
  std::vector<Path> paths_;              // [commands]
  std::vector<std::uint32_t> in_queue_;  // [queues] the last command so far
  std::vector<std::uint32_t> on_lock_;   // [locks] the last command so far
};

}  // namespace tutti::internal
