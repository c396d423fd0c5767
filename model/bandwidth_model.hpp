#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/topology.hpp"

namespace tutti {

/// How the transfers that are active together share the machine.
enum class RateRule : std::uint8_t {
  MaxMin,     ///< weighted max-min among the active ones, new at every event
  Allocated,  ///< each keeps the share it would have if all streams were always active
};

/// The rates of the transfers that are active together.
///
/// The problem: flow i has weight w_i and takes cost_ic of capacity c for each byte. Rates r_i = w_i * lambda rise
/// together until a capacity is full, sum_i cost_ic * r_i = C_c; its flows stay there and the others go on (weighted
/// max-min fairness).
///
/// Loaded once a batch with every flow that may ever be active; then flows start and stop, and their rates are asked.
/// Every start and stop is a new problem, so it is made small while loading:
///  1. A capacity that one flow, or one copy engine, uses alone is a limit of that flow.
///  2. A capacity that all flows together, each at its own limit, cannot fill is dropped.
///  3. Flows alike in weight, limit and capacities left are a *group*: at any time they have one lambda.
///  4. A capacity that one group crosses alone is a limit of that group, divided by its active flows.
///  5. What is left is a *row*: a capacity for which groups compete.
/// On a machine whose links form a tree, what is left is mostly one row. The memory is kept between loads: after the
/// first, nothing is allocated.
class BandwidthModel {
 public:
  /// Forgets all flows and takes the capacities of a machine, which outlives the use of this model.
  /// @param most_flows  so many flows will be added at most; 0: not known, and none over ways that the machine keeps
  /// ready.
  void reset(const Topology& machine, Basis basis, std::size_t most_flows = 0);

  /// Adds a flow. Flows of one stream are added in a row; they count once where capacities are split.
  /// @param first,second  the links of its way, in two pieces; the second may be empty.
  /// @param weight        > 0.
  /// @return its id: its position.
  std::uint32_t add_flow(std::uint32_t stream, std::span<const LinkId> first, std::span<const LinkId> second,
                         double weight);
  /// The same over a way that the machine keeps ready; flows of one engine are never active together.
  /// @pre `reset` was told how many flows there will be.
  std::uint32_t add_flow(std::uint32_t stream, const DirectWay& way);

  /// Ends the loading; no flow is active.
  void finish(RateRule rule);

  /// A flow of a group becomes active, or is active no more.
  void start(std::uint32_t group) { count(group, 1); }
  void stop(std::uint32_t group) { count(group, -1); }
  /// Finds the rates of the active flows.
  /// @return the groups whose lambda may have changed since it was called last; until the next start or stop.
  std::span<const std::uint32_t> solve();

  [[nodiscard]] std::size_t flow_count() const { return flow_count_; }
  [[nodiscard]] std::size_t group_count() const { return group_count_; }
  [[nodiscard]] std::uint32_t group(std::uint32_t flow) const { return flows_[flow].group; }
  /// Flows of a group, active or not.
  [[nodiscard]] std::uint32_t group_size(std::uint32_t group) const { return groups_[group].size; }
  [[nodiscard]] double weight(std::uint32_t flow) const { return kinds_[flows_[flow].kind].weight; }
  /// Rate of the active flows of a group, per weight, byte/ns.
  /// @pre one is active; solved since the last start and stop.
  [[nodiscard]] double lambda(std::uint32_t group) const { return groups_[group].lambda; }
  /// Rate of an active flow, byte/ns; the same precondition.
  [[nodiscard]] double rate(std::uint32_t flow) const { return weight(flow) * lambda(group(flow)); }
  /// Rate of a flow with nothing else under way, byte/ns.
  [[nodiscard]] double alone(std::uint32_t flow) const { return kinds_[flows_[flow].kind].alone; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// Flows over ways of one kind.
  struct Kind {
    double weight;
    double alone;
    const CapacityUse* uses;  // null: in `own_uses_`
    std::uint32_t begin;      // there
    std::uint32_t contested;  // uses
    std::uint32_t flows;
    std::uint32_t group;
  };
  struct Flow {
    std::uint32_t kind;
    std::uint32_t group;
    std::uint32_t stream;
    const DirectWay* way;  // null: its kind says all
  };
  /// A capacity of the machine as this batch sees it.
  struct Capacity {
    std::uint32_t epoch = 0;  // of the batch that the rest is about
    std::uint32_t flows;      // that cross it
    double demand;            // the most that they can take of it together
    std::uint32_t newest;     // group whose last share is of it
    std::uint32_t groups;     // that cross it
    std::uint32_t row;        // where groups compete for it
    bool binds;
  };
  /// What a flow of a group takes of a capacity.
  struct Share {
    std::uint32_t capacity;
    double load;  // weight x cost
    friend bool operator==(const Share&, const Share&) = default;
  };
  struct Group {
    double active;  // flows, a whole number
    double limit;   // lambda that a flow's own capacities allow
    double joint;   // the same for all active flows together: divided by their number
    double own;     // lambda that both allow
    double lambda;  // the same and, when solved, what rows allow
    bool competes;  // for rows
    bool changed;   // since the last solution
    std::uint32_t size;
    double weight;
    std::uint32_t share_begin, share_end;
    std::uint32_t older;  // group with the same last capacity
  };
  struct Member {
    std::uint32_t group;
    double load;
  };
  struct Row {
    double value;
    std::uint32_t begin, end;  // its members
    bool open;                 // while rows fill
  };

  [[nodiscard]] std::span<const CapacityUse> contested(const Kind& kind) const {
    return {kind.uses != nullptr ? kind.uses : own_uses_.data() + kind.begin, kind.contested};
  }
  [[nodiscard]] std::span<const CapacityUse> all_uses(const Flow& flow) const;
  void add_own_use(const CapacityUse& use, std::size_t begin);
  void find_demand();
  void find_groups();
  std::uint32_t find_group(const Kind& kind, std::uint32_t end);
  std::uint32_t add_group(double weight, double limit);
  [[nodiscard]] bool alike(const Group& group, double weight, double limit, std::uint32_t end) const;
  void find_rows();
  void split_shares(std::uint32_t group);
  void allocate();
  void count(std::uint32_t group, double change) {
    groups_[group].active += change;
    active_ += change;
    changed_[changed_count_] = group;
    changed_count_ += groups_[group].changed ? 0 : 1;
    groups_[group].changed = true;
  }
  void fill_rows();
  [[nodiscard]] double full_at(const Row& row) const;

  std::span<const double> values_;  // [machine capacities]
  const Topology* machine_ = nullptr;
  Basis basis_ = Basis::Nominal;
  std::uint32_t epoch_ = 0;
  double active_ = 0;  // flows, a whole number
  std::uint32_t changed_count_ = 0;

  // What the batch needs; the vectors are longer where an earlier batch needed more.
  std::size_t most_uses_ = 0;  // of contested capacities
  std::uint32_t flow_count_ = 0, kind_count_ = 0, use_count_ = 0, touched_count_ = 0, group_count_ = 0,
                share_count_ = 0, row_count_ = 0;
  std::vector<Flow> flows_;
  std::vector<Kind> kinds_;
  std::vector<std::uint64_t> kind_of_;  // [machine's kinds] epoch << 32 | position in `kinds_`
  std::vector<CapacityUse> own_uses_;   // of flows whose way the machine does not keep ready
  std::vector<Capacity> capacities_;    // [machine capacities]
  std::vector<std::uint32_t> touched_;  // capacities that flows contest, in the order in which they were met
  std::vector<Group> groups_;
  std::vector<std::uint32_t> changed_;  // groups, since the last solution
  std::vector<std::uint32_t> all_;      // groups
  std::vector<Share> shares_;           // of groups, one after the other
  std::vector<Row> rows_;
  std::vector<Member> members_;         // of rows, one after the other
  std::vector<double> load_, largest_;  // [machine capacities] of all streams, of one stream; for `allocate`
};

}  // namespace tutti
