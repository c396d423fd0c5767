#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "model/planner.hpp"

namespace tutti {

/// One transfer as the bound sees it.
struct BoundedFlow {
  double bytes = 0;                   ///< at most; > 0
  double weight = 1;                  ///< sharing weight
  double alone = 0;                   ///< rate that nobody else can take from it, as long as nobody shares; byte/ns
  std::span<const CapacityUse> uses;  ///< of capacities that it shares with others; each once
  std::uint32_t chain = 0;            ///< flows of one chain are never active together
  double earliest = 0;                ///< start, ns
  std::uint32_t after = kNone;        ///< flow of its chain, before it in the order, behind whose finish it starts
  double delay = 0;                   ///< ns: it starts at most this long after that finish, or after 0
  double finish = std::numeric_limits<double>::infinity();  ///< result: the latest, ns
};

/// The latest finish of every flow, whatever happens inside the declared ranges: sizes at most those declared,
/// capacities at least those given, starts anywhere from the earliest on. Max-min sharing is not monotone, so no single
/// simulation tells.
///
/// While capacity c holds flow f back, c is full and no other flow on it has more for its weight. So where f moves x
/// bytes meanwhile, another one g moves at most min(S_g, x w_g / w_f), and c needs at most
///   (cost_fc x + sum over g of cost_gc min(S_g, x w_g / w_f)) / C_c.
/// f needs at most the largest sum of these over all ways to split its bytes over its capacities: concave in each
/// part, so slopes are taken in order. Only those g count whose times can overlap: time is cut into windows where some
/// flow may start or must be over, and f is followed from window to window at its slowest. What is found for one flow
/// narrows the times of the others, so flows are taken by their start, in up to two rounds; each of them is safe.
class SafeBound {
 public:
  /// Fills in `finish`. The memory is kept between calls.
  void find(std::span<const double> capacities, std::span<BoundedFlow> flows);
  /// Fills in as `finish` how long each flow takes at most, whenever it and all others start.
  void find_durations(std::span<const double> capacities, std::span<BoundedFlow> flows);

 private:
  /// A flow on a capacity, in units of bytes per weight.
  struct Rival {
    std::uint32_t flow;
    double load;   // weight x cost: what it takes while it keeps up
    double limit;  // it keeps up for so long
  };
  /// A capacity of the flow in question while its bytes are handed out.
  struct Link {
    const Rival* next;  // rivals before it do not keep up any more
    const Rival* end;
    double inverse;  // of the capacity
    double load;     // of the flow and of all that keep up
    double handed_out;
  };
  /// Time in which the same flows may be active. Which rivals count: those that may start before `end` and need not be
  /// over at `begin`.
  struct Window {
    double begin, end;
  };
  struct Progress {
    double bytes, time;
  };
  /// A capacity that flows use.
  struct Capacity {
    double inverse = 0;
    std::uint32_t begin = 0, end = 0;  // its rivals
    std::uint32_t place = 0;           // its column in `loads_`
    std::uint32_t epoch = 0;           // of the batch that the rest is about
    bool placed = false;               // its rivals have their place
  };

  void list_rivals(std::span<const double> capacities, std::span<const BoundedFlow> flows);
  void make_windows(std::span<const BoundedFlow> flows);
  void bound_at_once(std::span<BoundedFlow> flows, std::uint32_t flow);
  bool bound_by_windows(std::span<BoundedFlow> flows, std::uint32_t flow);
  void leave_windows(const BoundedFlow& flow, double before);
  [[nodiscard]] double start_of(std::span<const BoundedFlow> flows, const BoundedFlow& flow) const;
  [[nodiscard]] double slope_in(std::span<const BoundedFlow> flows, std::uint32_t flow, std::size_t window) const;
  [[nodiscard]] Progress slowest(std::span<const BoundedFlow> flows, std::uint32_t flow, Window window, double bytes,
                                 double time);

  std::vector<Rival> rivals_;  // of each capacity in the order in which they stop to keep up
  std::vector<std::pair<double, std::uint32_t>> by_limit_;  // flows
  std::vector<Capacity> capacities_;                        // [capacities]
  std::uint32_t epoch_ = 0;
  std::uint32_t used_ = 0;  // capacities
  std::vector<Link> links_;
  std::vector<std::uint32_t> by_start_;  // flows
  std::vector<double> cuts_;             // [windows + 1]
  std::vector<double> loads_;            // [windows x used_] of all flows that may be active
};

/// The latest finishes of a batch in a simulation, and the memory to find them: kept between calls.
class BatchBound {
 public:
  /// The batch loaded in a simulation, at the bandwidths and under the rate rule that it was loaded with.
  /// @param gates        [chains] ns, when each chain's gate opens, without the set-up of the batch.
  /// @param gate_jitter  ns: a gate opens at most so much later.
  /// @return [streams] ns from the start of the batch, set-up included; valid until the next call.
  std::span<const double> find(const BatchSimulation& loaded, std::span<const double> gates, double gate_jitter);

 private:
  void add_flows(const BatchSimulation& loaded, std::span<const double> gates, double gate_jitter);
  void find_waits(const BatchChains& batch);

  SafeBound bound_;
  std::vector<double> waits_;       // [steps] before it
  std::vector<BoundedFlow> flows_;  // chain by chain
  std::vector<double> finishes_;    // [streams]
};

/// When each stream, and the whole batch, is over at the latest.
struct LatestFinish {
  std::vector<Duration> streams;  ///< in the order of the batch, from its start
  Duration batch{};
};

/// The latest finish of a plan: of every batch with the same streams, sizes and kernels at most as declared (kernels at
/// their worst), on a machine whose capacities are at or above those of `basis`, whose gates open at the plan's or up
/// to `gate_jitter` later. It holds for the planner's own rate rule, and is never before the plan's own end: a measured
/// table has no such theory and may be slower than the graph. Rounded up.
/// @pre the plan was made for this machine and batch.
[[nodiscard]] LatestFinish latest_finish(const Planner& planner, const Topology& machine, const BatchOperation& batch,
                                         const Timeline& plan, Basis basis = Basis::Guaranteed,
                                         Duration gate_jitter = {});

}  // namespace tutti
