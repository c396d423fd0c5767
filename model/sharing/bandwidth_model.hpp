#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/base/expects.hpp"
#include "model/machine/rate.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// The rates of the transfers that are active together.
///
/// The problem: flow i has weight w_i and takes cost_ic of capacity c for each byte. Rates r_i = w_i * lambda rise
/// together until a capacity is full, sum_i cost_ic * r_i = C_c; its flows stay there and the others go on (weighted
/// max-min fairness).
///
/// A model is loaded once per batch with every flow that may ever be active; then flows start and stop, and rates are
/// read. Every start and stop is a new problem, so loading makes it small:
///  1. Flows are counted by route class; flows of one class are of one *kind*.
///  2. A capacity that all flows together, each at its own limit, cannot fill is dropped.
///  3. Kinds equal in weight, limit and remaining capacities are a *group*: its active flows have one rate at any time.
///  4. A capacity that one group crosses alone is a limit of that group, divided by its active flows.
///  5. Each remaining capacity is a *row*: groups compete for it.
/// On a machine whose links form a tree, mostly one row remains. Where several remain, each row keeps the level at
/// which it is full, and a start or stop changes only the rows that it reaches. The memory is kept between loads: after
/// the first, nothing is allocated.
///
/// With nominal bandwidths a machine's measured table has precedence: copies at ports that it covers run at its rates
/// where it has their active combination. While another transfer (a staged copy, a route of its own) is active that
/// could take bandwidth from them, all rates are max-min. Transfers that share nothing with them have max-min rates
/// beside them. Where the table has not the combination of all active ports, but that of the first memory's, the same
/// holds for these: copies at other ports are then other transfers. Each port of a table is a group.
class BandwidthModel {
 public:
  /// Forgets all flows.
  /// @param own_classes  route classes besides the machine's; they and the machine outlive the use of this model.
  /// @param most_flows   upper bound on the number of flows that will be added.
  void reset(const Topology& machine, Basis basis, std::span<const RouteClass> own_classes, std::size_t most_flows);

  /// Adds a flow.
  /// @pre flows of one copy engine are never active together: the links at its GPU are not shared out among them.
  /// @param index  its route class: a position among the machine's classes and then the own ones.
  /// @param queue  an engine queue runs one flow at a time; its flows are added in succession. kNone: a flow of its
  /// own.
  /// @return a number that flows of one kind have in common: its *kind* in the functions below.
  std::uint32_t add_flow(std::uint32_t index, std::uint32_t queue = kNone) {
    std::uint64_t& known = kind_of_[index];
    const bool is_new = known >> 32 != epoch_;
    write_kind(index);  // always written, kept where it is new: no branch
    known = is_new ? std::uint64_t{epoch_} << 32 | kind_count_ : known;
    kind_count_ += is_new ? 1 : 0;
    const auto kind = static_cast<std::uint32_t>(known);
    ++kinds_[kind].flows;
    turns_[turn_count_] = {kind, queue};  // no branch, as above
    turn_count_ += kinds_[kind].queue != queue || queue == kNone ? 1 : 0;
    kinds_[kind].queue = queue;
    return kind;
  }
  /// Adds a flow that has this rate, byte/ns, whatever else is active.
  std::uint32_t add_fixed_flow(std::uint32_t index, double rate);

  /// Ends the loading; no flow is active.
  void finish();
  /// Forgets the solutions so far, from which the next ones start. Equal starts and stops then have equal rates to the
  /// last bit.
  /// @pre no flow is active.
  void restart();

  /// A flow of a group becomes active, or is active no more.
  void start(std::uint32_t group) {
    if (groups_[group].port != kNoPort) active_.insert(groups_[group].port);
    set_active(groups_[group], groups_[group].active + 1);
    for (std::uint32_t i = groups_[group].row_begin; i < groups_[group].row_end; ++i) look_again(rows_of_[i], 0);
  }
  void stop(std::uint32_t group) {
    if (groups_[group].port != kNoPort) active_.erase(groups_[group].port);
    set_active(groups_[group], groups_[group].active - 1);
    for (std::uint32_t i = groups_[group].row_begin; i < groups_[group].row_end; ++i) {
      const Row& row = rows_[rows_of_[i]];
      if (row.is_full() || row.waits()) look_again(rows_of_[i], row.level.value);
    }
  }
  /// Finds the rates of the active flows.
  void solve();

  /// Whether a flow's rate can depend on which others are active.
  [[nodiscard]] bool rates_vary() const { return share_count_ > 0 || table_ != nullptr; }
  /// Source of a group's rate in the last solution.
  [[nodiscard]] RateSource source(std::uint32_t group) const {
    return is_looked_up(groups_[group]) ? source_ : RateSource::Graph;
  }
  [[nodiscard]] std::uint32_t group_count() const { return group_count_; }
  /// Flows of a group that are active.
  [[nodiscard]] std::uint32_t active(std::uint32_t group) const { return groups_[group].active; }
  [[nodiscard]] std::uint32_t group(std::uint32_t kind) const { return kinds_[kind].group; }
  /// Rate of each active flow of a group, byte/ns, and its inverse, found without a division.
  /// @pre one is active; solved since the last start and stop.
  [[nodiscard]] Rate rate(std::uint32_t group) const {
    const Group& of = groups_[group];
    const Rate lambda = of.own.at_most(caps_[of.cap]);
    return {lambda.value * of.weight, lambda.inverse * of.inverse_weight};
  }
  /// The machine's capacities on the loaded basis.
  [[nodiscard]] std::span<const double> capacities() const { return values_; }
  /// Rate of a flow of a kind with nothing else active, byte/ns.
  [[nodiscard]] double alone(std::uint32_t kind) const { return kinds_[kind].alone; }
  /// A kind's flows: highest rate of one, capacities that it shares with others, and its weight.
  [[nodiscard]] double most(std::uint32_t kind) const { return kinds_[kind].most; }
  [[nodiscard]] std::span<const CapacityUse> uses(std::uint32_t kind) const { return kinds_[kind].uses; }
  [[nodiscard]] double weight(std::uint32_t kind) const { return kinds_[kind].weight; }

 private:
  static constexpr PortId kNoPort{kNone};  // an optional would be copied byte by byte, which the processor waits for

  struct Kind {
    std::span<const CapacityUse> uses;
    double weight;
    double alone;
    double most;  // upper bound on a flow's rate, whatever else is active
    std::uint32_t flows;
    std::uint32_t group;
    PortId port;          // of the measured table, kNoPort
    bool capped;          // at `most`, also where the table has more
    std::uint32_t queue;  // of the flow added last
  };
  /// An engine queue and a kind of its flows.
  struct Turn {
    std::uint32_t kind;
    std::uint32_t queue;
  };
  /// A capacity of the machine as this batch sees it.
  struct Capacity {
    std::uint32_t epoch = 0;  // batch that the other fields belong to
    std::uint32_t queue;      // the last one that crosses it
    std::uint32_t queues;     // that cross it
    double demand;            // the most that they can take of it together
    double of_queue;          // demand of the last queue
    std::uint32_t newest;     // group whose last share is of it
    std::uint32_t groups;     // that cross it
    std::uint32_t row;        // where groups compete for it
    bool binds;
    bool of_table;  // copies at ports of the table cross it
    bool of_first;  // copies at ports of the first memory do
  };
  /// Load of a group's flow on a capacity.
  struct Share {
    std::uint32_t capacity;
    double load;  // weight x cost
    friend bool operator==(const Share&, const Share&) = default;
  };
  struct alignas(128) Group {  // two cache lines, and a shift finds it
    void begin(const Kind& kind, Rate weights, Rate most, std::uint32_t next_older);

    Rate own;    // lambda that limit and joint allow
    Rate limit;  // lambda that a flow's own capacities allow
    Rate joint;  // limit on lambda x active flows
    double weight, inverse_weight;
    double demand;         // `active` to calculate with
    std::uint32_t active;  // flows
    std::uint32_t cap;     // where `caps_` says what rows allow
    std::uint32_t share_begin, share_end;
    std::uint32_t row_begin, row_end;  // the rows that it is a member of, where there are several
    std::uint32_t older;               // group with the same last capacity
    PortId port;                       // of its kind
    bool first;                        // that is of the first memory
    bool competes;                     // no port of the table, and can take bandwidth from copies at these
    bool competes_with_first;          // no port of the first memory, and can take bandwidth from copies at these
    bool capped;                       // at `limit`, also where the table has more
  };
  struct Member {
    std::uint32_t group;
    double load;
  };
  struct Row {
    double value;
    std::uint32_t begin, end;  // its members
    double lambda;             // at which it was full when it was looked at last
    bool of_table;             // ports of the table are among its members
    bool of_first;             // ports of the first memory are
    // Where there are several rows.
    bool settled;         // closed to the rest of a filling from scratch
    bool known;           // `full` is up to date
    std::uint32_t place;  // among those that wait to be looked at, kNone
    Rate level;           // upper bound on its groups' lambda; no limit: the row is not full
    Rate full;
    double key;  // while it waits: lower bound on `level` and on the current `full`

    [[nodiscard]] bool is_full() const { return level.inverse > 0; }
    [[nodiscard]] bool waits() const { return place != kNone; }
  };
  /// The row with the lowest level of a group's rows (the level is in `caps_`), and the lowest level of the other rows.
  struct Lowest {
    std::uint32_t row;
    double others;
  };
  /// Demand of a group's active flows on a row: load x lambda, up to their own lambda.
  struct Taker {
    double own, load;
  };

  [[nodiscard]] const RouteClass& route_class(std::uint32_t index) const {
    return index < classes_.size() ? classes_[index] : own_classes_[index - classes_.size()];
  }
  void write_kind(std::uint32_t index) {
    TUTTI_EXPECTS(kind_count_ < kinds_.size(), "there is room for the flows that were announced");
    const RouteClass& kind = route_class(index);
    const double alone = kind.alone.at(basis_).value;
    kinds_[kind_count_] = {kind.uses_at(basis_), kind.weight, alone, alone, 0, kNone, kNoPort, kind.capped, kNone};
    if (table_ != nullptr && kind.port) write_port(kinds_[kind_count_], *kind.port);
  }
  void write_port(Kind& kind, PortId port) const;
  void set_active(Group& group, std::uint32_t flows) {
    group.active = flows;
    group.demand = flows;
    group.own = group.limit.at_most({group.joint.value * inverse_of_[flows], group.joint.inverse * flows});
  }
  [[nodiscard]] bool is_first(PortId port) const { return table_ != nullptr && table_->is_first(port); }
  void find_demand();
  void find_groups();
  std::uint32_t find_group(const Kind& kind, std::uint32_t end);
  [[nodiscard]] bool belongs_to(const Group& group, const Kind& kind, double limit, std::uint32_t end) const;
  void make_table_groups();
  /// The groups that have rates of the table.
  enum class LookedUp : std::uint8_t { None, FirstMemory, All };
  LookedUp look_up();
  void take_from_table(std::uint32_t row, const PortSet& ports, LookedUp of);
  [[nodiscard]] bool is_looked_up(const Group& group) const {
    return group.port != kNoPort &&
           (looked_up_ == LookedUp::All || (looked_up_ == LookedUp::FirstMemory && group.first));
  }
  /// Whether looked-up rates stand for all that compete for the row.
  [[nodiscard]] bool is_looked_up(const Row& row) const {
    return looked_up_ == LookedUp::All ? row.of_table : looked_up_ == LookedUp::FirstMemory && row.of_first;
  }
  void share_out();
  void find_rows();
  void split_shares(std::uint32_t group);
  [[nodiscard]] Rate full_at(const Row& row) const;

  void fill_rows_anew();
  bool fill_rows(std::uint32_t most_changes, bool settle);
  void set_level(std::uint32_t row, Rate level);
  void touch(std::uint32_t row, double was, double is);
  [[nodiscard]] Rate full_beside_others(std::uint32_t row);
  [[nodiscard]] double level_of_others(std::uint32_t group, std::uint32_t row) const {
    return lowest_[group].row == row ? lowest_[group].others : caps_[1 + group].value;
  }
  void find_lowest(std::uint32_t group);
  void forget_levels();
  void look_again(std::uint32_t row, double key);
  void take_off_first();
  void sift_up(std::uint32_t row, std::uint32_t place);
  void sift_down(std::uint32_t row, std::uint32_t place);
  void put(std::uint32_t row, std::uint32_t place) {
    waiting_[place] = row;
    rows_[row].place = place;
  }

  std::span<const double> values_;         // [machine capacities]
  const MeasuredTable* table_ = nullptr;   // null where it is not used
  bool table_only_ = false;                // all rates come from the table
  bool further_ = false;                   // some port of the table is not of the first memory
  PortSet active_;                         // of the table
  LookedUp looked_up_ = LookedUp::None;    // in the last solution
  RateSource source_ = RateSource::Graph;  // of the looked-up rates
  std::span<const RouteClass> classes_, own_classes_;
  Basis basis_ = Basis::Nominal;
  std::uint32_t epoch_ = 0;

  // Sized for the batch; the vectors are longer where an earlier batch needed more.
  std::uint32_t kind_count_ = 0, turn_count_ = 0, touched_count_ = 0, group_count_ = 0, share_count_ = 0,
                row_count_ = 0;
  std::uint32_t rows_of_count_ = 0, waiting_count_ = 0;
  std::uint32_t newest_free_ = kNone;  // group without shares
  std::vector<Kind> kinds_;
  std::vector<Turn> turns_;
  std::vector<std::uint64_t> kind_of_;  // [route classes] epoch << 32 | position in `kinds_`
  std::vector<Capacity> capacities_;    // [machine capacities]
  std::vector<std::uint32_t> touched_;  // capacities that flows use, in the order in which they were met
  std::vector<Group> groups_;
  std::vector<double> inverse_of_;  // [flows + 1] 1 / n; of 0: infinite
  std::vector<Rate> caps_;          // [0] no limit; then of the only row, or of each group from its rows
  std::vector<Share> shares_;       // of groups, one after the other
  std::vector<Row> rows_;
  std::vector<Member> members_;         // of rows, one after the other
  std::vector<std::uint32_t> rows_of_;  // of groups, one after the other, where there are several
  std::vector<Lowest> lowest_;          // [groups]
  std::vector<Taker> takers_;           // of the row that is looked at
  std::vector<std::uint32_t> waiting_;  // a heap of rows, the lowest key first
};

}  // namespace tutti::internal
