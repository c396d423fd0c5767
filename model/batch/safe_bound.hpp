#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "model/batch/batch_simulation.hpp"
#include "model/batch/execution_plan.hpp"

namespace tutti::internal {

/// A step of a batch in the bound: time that passes, then bytes that flow.
struct BoundedStep {
  double time = 0;                    ///< ns, at most
  double bytes = 0;                   ///< at most; 0: none
  double weight = 1;                  ///< sharing weight
  double alone = 0;                   ///< its own rate limit, whatever else is active; byte/ns
  std::span<const CapacityUse> uses;  ///< of capacities that it shares with others; each once
  std::uint32_t group = 0;  ///< steps of one group run in their order, each after the one before; kNone: alone
  std::array<std::uint32_t, 2> locks{kNone, kNone};  ///< it never flows together with others that hold one of them
  double earliest = 0;                               ///< start, ns
  double release = 0;                                ///< ns: it starts at this at the latest,
  std::array<std::uint32_t, 3> after{kNone, kNone, kNone};  ///< or when the last of these earlier steps is over; first
                                                            ///< the one before it in its queue
  double unpaid = 0;  ///< ns more, where it waits for another one: what steps before it in its queue do not pay for it
                      ///< where they have no bytes
  double finish = std::numeric_limits<double>::infinity();  ///< result: the latest, ns
  std::uint32_t kind = kNone;                               ///< result: the first step of its group with an equal flow
};

/// The latest finish of every step, whatever happens inside the declared ranges: bytes and times at most those
/// declared, capacities at least those given, starts anywhere from the earliest on. Max-min sharing is not monotone, so
/// no single simulation finds it.
///
/// **Order.** A step starts when the last of its predecessors is over: the step before it in its queue, and those
/// before it on its locks, whose order is fixed. So it is over at most its own time and flow after their latest
/// finishes (longest path). A predecessor that is dropped is over when its own predecessors are, whose latest finishes
/// are not after its own: the lock passes on in time. What it would have paid once for those behind it, one of these
/// pays: later only where it waits for something else than the queue.
///
/// **Bandwidth.** Volume is bytes per weight. While capacity c holds flow f back, c is full and no other flow on it has
/// more for its weight. So while f moves volume x there, any other flow g moves y_g <= x, all of a group together (one
/// at a time) sum y_g <= x, and g never more than all that it has, Y_g. f needs of c, with l_gc = weight x cost,
///   l_fc x + sum over groups K of use_Kc(x),   use_Kc(x) = max sum over g in K of l_gc y_g,
/// in time at C_c: the loads of a group are used up in turn, the largest first. This is concave in x, so the worst
/// split of f's volume over its capacities, of which its own rate is one (no others there), is found slope by slope.
/// This also holds for a run of steps of one group, one behind the other: volumes add up, each rival's bytes count once
/// for the whole run, and their times are added. On each capacity the loads of the run too are taken in turn, the
/// largest first; and capacities that none but some kinds of its flows cross are handed no more than these have (a
/// polymatroid, on which going slope by slope is still the worst).
/// A capacity d counts with another one, c, where each flow on d is on c too and needs no less time of it for a byte,
/// l_gd / C_d <= l_gc / C_c: links in a row that the same copies cross. While d holds f back for a volume x, that takes
///   (l_fd x + sum use_Kd(x)) / C_d <= (l_fc x + sum use_Kc(x)) / C_c,
/// and as no rival moves more than x then either, the volumes at d and c add up as if all were moved at c.
///
/// **Time.** Only rivals count whose times can overlap. Time is cut into windows where some group may start to use a
/// capacity or must be done with it, and steps are followed from window to window at their slowest. An earlier finish
/// of one step narrows the times of others, so this is done in up to three rounds. Each method to find a finish is
/// safe; the earliest finish counts.
class SafeBound {
 public:
  /// Fills in `finish`. The memory is kept between calls.
  /// @param steps  each after those that it waits for.
  void find(std::span<const double> capacities, std::span<BoundedStep> steps);

 private:
  static constexpr std::uint32_t kKinds = 3;  // distinguished in a run; further ones count with the last
  static constexpr std::uint32_t kMostWider = 4;

  /// A group on a capacity.
  struct Share {
    double load;              // the largest weight x cost
    double earliest, finish;  // when it may use the capacity
    std::uint32_t group;
    std::array<std::uint32_t, 2> locks;  // that it always holds when it does
    std::uint32_t last;                  // step that uses it
    std::uint32_t pieces;                // the first of them
  };
  /// The part of a share that has one load.
  struct Piece {
    double load, volume;
    std::uint32_t next;
  };
  /// A share's load falls by `drop` once `limit` of volume is handed out on the capacity.
  struct Event {
    double limit, drop;
    std::uint32_t share;
  };
  /// A capacity that steps use.
  struct Capacity {
    double inverse = 0;
    std::uint32_t shares_begin = 0, shares_end = 0;
    std::uint32_t events_begin = 0, events_end = 0;
    std::uint32_t epoch = 0;                        // batch that the other fields belong to
    std::uint32_t newest = kNone;                   // share
    std::uint32_t link = kNone;                     // while a run is put together
    std::array<std::uint32_t, kMostWider> wider{};  // capacities that it could count with
    std::uint32_t wider_count = 0;
    bool counts = true;  // with none of them
  };
  /// A capacity of the flow in question while its volume is handed out.
  struct Link {
    const Event* next;
    const Event* end;
    double inverse;  // of the capacity
    double rivals;   // load of those that keep up
    double own;      // load of the flow
    double handed_out;
    double own_left;      // volume that has this load
    std::uint32_t piece;  // of its own that comes next
    std::uint32_t kinds;  // of the run's flows that cross it, a bit each
  };
  /// The shares that count: rivals that may flow between two instants.
  struct Filter {
    std::uint32_t group;
    std::array<std::uint32_t, 2> locks;
    double begin, end;
    [[nodiscard]] bool counts(const Share& share) const {
      return share.group != group && share.earliest < end && share.finish > begin && !holds(share.locks[0]) &&
             !holds(share.locks[1]);
    }
    [[nodiscard]] bool holds(std::uint32_t lock) const {
      return lock != kNone && (lock == locks[0] || lock == locks[1]);
    }
  };
  struct Progress {
    double volume, time;
  };
  struct Group {
    std::uint32_t begin = 0, end = 0;  // its members
    std::uint32_t flow = kNone;        // the first of each kind of flow, the rest behind it
    bool one_kind = true;              // of flow
    std::uint32_t anchors = 0;
  };
  /// A step of a group that may start later than when the one before it is over.
  struct Anchor {
    std::uint32_t member;
    double release;
  };

  void list_groups(std::span<BoundedStep> steps);
  void find_kind(std::span<BoundedStep> steps, std::uint32_t step);
  void list_capacities(std::span<const double> capacities, std::span<const BoundedStep> steps);
  void look_at_uses(std::span<const double> capacities, std::span<const CapacityUse> uses);
  void list_shares(std::span<const BoundedStep> steps);
  void add_share(const BoundedStep& step, std::uint32_t position, const CapacityUse& use);
  void list_events();
  void make_windows(std::size_t steps);
  /// When a predecessor is over, as far as this step is concerned.
  [[nodiscard]] static double finish_before(std::span<const BoundedStep> steps, const BoundedStep& step, std::size_t i);
  [[nodiscard]] static double start_of(std::span<const BoundedStep> steps, const BoundedStep& step);
  [[nodiscard]] double released(std::span<const BoundedStep> steps, std::uint32_t step) const;
  void bound_at_once(std::span<BoundedStep> steps, std::uint32_t step);
  [[nodiscard]] double run_length(std::span<const BoundedStep> steps, std::uint32_t from, std::uint32_t to);
  bool bound_by_windows(std::span<BoundedStep> steps, std::uint32_t step);
  void narrow_shares(const BoundedStep& step, std::uint32_t position);
  void begin_flow(const BoundedStep& step, const Filter& filter);
  double begin_run(std::span<const BoundedStep> steps, std::uint32_t from, std::uint32_t to, const Filter& filter);
  Link& link_of(CapacityId capacity, const Filter& filter);
  void add_own(Link& link, double load, double volume);
  template <bool mixed>
  Progress hand_out(const Filter& filter, double volume, double time);

  std::uint32_t epoch_ = 0;
  std::vector<Capacity> capacities_;  // [capacities]
  std::vector<std::uint32_t> used_;   // capacities that count
  std::vector<Share> shares_;
  std::vector<std::uint32_t> share_capacity_;  // [shares] while they are found
  std::vector<Share> found_;                   // in the order in which they are found
  std::vector<Piece> pieces_;
  std::vector<Event> events_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> members_;    // steps, group by group
  std::vector<std::uint32_t> next_kind_;  // [steps] that are the first of theirs
  std::vector<std::uint32_t> place_;      // [steps] in `members_`
  std::vector<double> volumes_, times_;   // [members] sums up to it in its group
  std::vector<Anchor> anchors_;           // of groups
  std::vector<Link> links_;
  std::vector<Piece> own_;
  std::array<double, 1U << kKinds> budgets_{};  // [sets of kinds] volume of their flows that is not handed out
  std::vector<double> cuts_;                    // [windows + 1]
  // The flow that is followed from window to window.
  std::uint32_t followed_ = kNone;  // step
  double followed_from_ = 0;        // where it began, at the latest
  std::size_t window_ = 0;
  Filter filter_{};
};

/// The latest finishes of a batch in a simulation, and the memory to find them: kept between calls.
class BatchBound {
 public:
  /// The batch loaded in a simulation, at the bandwidths and under the rate rule that it was loaded with.
  /// @param gates        [queues] ns, when each queue's gate opens, without the set-up of the batch.
  /// @param gate_jitter  ns: a gate opens at most this much later.
  /// @param order        commands by their first steps, in the order in which GPUs and engines serve them; empty: the
  ///                     order of the last run, which went forward. Used where queues may wait for each other.
  /// @return [streams] ns from the start of the batch, set-up included; valid until the next call.
  std::span<const double> find(const BatchSimulation& loaded, std::span<const double> gates, double gate_jitter,
                               std::span<const std::uint32_t> order = {});

 private:
  void add_queues(const BatchSimulation& loaded, std::span<const double> gates, double gate_jitter);
  void add_commands(const BatchSimulation& loaded, std::span<const double> gates, double gate_jitter,
                    std::span<const std::uint32_t> order);
  BoundedStep& add_step(const BatchSimulation& loaded, const Step& step);

  SafeBound bound_;
  std::vector<BoundedStep> steps_;
  std::vector<std::uint32_t> streams_;  // [steps]
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> queue_of_;       // [steps of the batch]
  std::vector<std::uint32_t> last_of_queue_;  // [queues] step
  std::vector<std::uint32_t> last_of_lock_;   // [locks] step
  std::vector<double> finishes_;              // [streams]
};

/// The latest finish of a plan: of every batch with the same streams, sizes and kernels at most as declared (kernels at
/// their worst), on a machine whose capacities are at or above those of `basis`, whose gates open at the plan's or up
/// to `gate_jitter` later, and whose GPUs and engines serve commands in the plan's order. It holds for the plan's own
/// rate rule, and is never before the plan's own end: a measured table has no such theory and may be slower than the
/// graph. Rounded up.
[[nodiscard]] LatestFinish latest_finish(const ExecutionPlan& plan, Basis basis = Basis::Guaranteed,
                                         Duration gate_jitter = {});

}  // namespace tutti::internal
