#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/batch.hpp"
#include "model/safe_bound.hpp"
#include "model/timeline.hpp"

namespace tutti {

/// What made a job take longer than its bound. Of equal excesses the earlier one here is named.
enum class BoundCause : std::uint8_t {
  Trigger,   ///< an external release came late
  Release,   ///< the dispatcher was free, and yet saw late that the job was ready
  Gate,      ///< a stream started later after its gate's instant than gates may
  Blocking,  ///< other jobs ran longer than their Wcet while it waited
  Transfer,  ///< a copy was slower than at guaranteed bandwidths
  Kernel,    ///< a kernel took longer than its worst
  Host,      ///< work on the host took longer than declared
  Dispatch,  ///< time went by between the dispatcher and the batches: before, between and behind them
  Foreign,   ///< a copy was slow while another process used the same GPU
  Unknown,
};
inline constexpr std::size_t kBoundCauses = 10;

/// "trigger", "release", ...: as reports have it.
[[nodiscard]] std::string_view to_string(BoundCause cause);

/// That a job was over its bound, or a batch over its latest finish.
struct BrokenBound {
  BoundCause cause = BoundCause::Unknown;
  Duration excess{};  ///< beyond the bound

  friend bool operator==(const BrokenBound&, const BrokenBound&) = default;
};

/// How much time each cause took from a job.
class Excesses {
 public:
  /// Nothing where it is not above 0.
  void add(BoundCause cause, Duration excess);
  /// At least so much for a cause.
  void raise(BoundCause cause, Duration excess);
  [[nodiscard]] Duration of(BoundCause cause) const { return of_[static_cast<std::size_t>(cause)]; }
  /// The cause that took most; Unknown where none took any.
  [[nodiscard]] BoundCause largest() const;

 private:
  std::array<Duration, kBoundCauses> of_{};
};

/// When something runs.
struct Extent {
  Duration start{}, end{};
};

/// What was promised of a batch, in a form that a measured run can be held against without taking memory.
///
/// Only a run that took longer than the latest finish is explained. Every command is followed from what it had to wait
/// for, as it was measured: its gate, the command before it in its chain, on its engine, on its GPU. Whatever it took
/// beyond its planned time, which is that of guaranteed bandwidths and worst kernels, is the excess of a transfer, a
/// kernel or host work; the time between its gate and its start is the gate's.
class BatchPromise {
 public:
  /// @param plan    of the batch at guaranteed bandwidths and worst kernel times
  /// @param latest  of that plan
  BatchPromise(const Batch& batch, const Timeline& plan, LatestFinish latest);

  [[nodiscard]] const LatestFinish& latest() const { return latest_; }
  /// What made a run late, by the cause with the largest excess. Allocates nothing.
  ///
  /// Of the streams that end after the batch's latest finish each adds up excesses on the way to its end; a late gate,
  /// a long kernel and long host work count wherever they are, since the latest finish of all streams rests on them. A
  /// completion that the host saw late is the dispatcher's.
  /// @param measured  of the same shape as the plan
  [[nodiscard]] BoundCause cause_of(const Timeline& measured);

 private:
  /// One transfer or kernel.
  struct Command {
    std::uint32_t stream = 0;
    bool kernel = false;
    bool host = false;    ///< a kernel on a cpu
    bool opener = false;  ///< the first of its chain: it waits for a gate
    std::uint32_t chain = 0;
    std::array<std::uint32_t, 2> locks{};  ///< engines or a GPU; kNone
    Duration opens{};    ///< of an opener: from when on its start is late; what a gate costs is planned
    Duration planned{};  ///< so long it takes; of others than openers from what they wait for last
  };
  /// On the way to the end of a command, what took how much more than planned. Signed: a copy makes up for another.
  struct Path {
    Duration gate{}, transfer{}, kernel{}, host{};
    Duration end{};  ///< of the command
  };

  void find_commands(const Batch& batch);
  /// Calls visit(command, end of what it waited for last and the path there) in the order of a timeline.
  template <class Visit>
  void follow(const Timeline& timeline, const Visit& visit);

  std::vector<Command> commands_;    // chain by chain
  std::vector<std::uint32_t> last_;  // [streams] its last command
  LatestFinish latest_;
  // Of the run that is explained:
  std::vector<std::uint32_t> order_;     // of commands, by their start
  std::vector<Extent> extents_;          // [commands] as far as they are ordered by them
  std::vector<Path> paths_;              // [commands]
  std::vector<std::uint32_t> in_chain_;  // [chains] the last command so far
  std::vector<std::uint32_t> on_lock_;   // [locks] the last command so far
};

}  // namespace tutti
