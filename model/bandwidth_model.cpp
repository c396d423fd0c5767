#include "model/bandwidth_model.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/expects.hpp"
#include "model/room.hpp"

namespace tutti {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

// ---- loading: flows and the capacities that they contest

void BandwidthModel::reset(const Topology& machine, Basis basis, std::size_t most_flows) {
  values_ = machine.capacities(basis);
  machine_ = &machine;
  basis_ = basis;
  make_room(capacities_, values_.size());
  make_room(kind_of_, machine.direct_ways().kinds);
  if (++epoch_ == 0) {
    for (Capacity& capacity : capacities_) capacity.epoch = 0;
    std::fill(kind_of_.begin(), kind_of_.end(), 0);
    epoch_ = 1;
  }
  flow_count_ = kind_count_ = use_count_ = 0;
  most_uses_ = most_flows * machine.direct_ways().most_contested;
  make_room(flows_, most_flows);
  make_room(kinds_, most_flows);
}

std::uint32_t BandwidthModel::add_flow(std::uint32_t stream, const DirectWay& way) {
  TUTTI_EXPECTS(flow_count_ < flows_.size(), "there is room for the flows that were announced");
  std::uint64_t& kind = kind_of_[way.kind];
  if (kind >> 32 != epoch_) {
    kind = std::uint64_t{epoch_} << 32 | kind_count_;
    kinds_[kind_count_++] = {way.weight, way.alone.at(basis_).value, way.uses.data(), 0, way.contested, 0, kNone};
  }
  ++kinds_[static_cast<std::uint32_t>(kind)].flows;
  flows_[flow_count_] = {static_cast<std::uint32_t>(kind), kNone, stream, &way};
  return flow_count_++;
}

std::uint32_t BandwidthModel::add_flow(std::uint32_t stream, std::span<const LinkId> first,
                                       std::span<const LinkId> second, double weight) {
  const std::uint32_t begin = use_count_;
  for (const std::span<const LinkId> leg : {first, second})
    for (const LinkId link : leg)
      for (const CapacityUse& use : machine_->uses(link)) add_own_use(use, begin);
  double alone = kInfinite;
  for (std::uint32_t i = begin; i < use_count_; ++i)
    alone = std::min(alone, values_[own_uses_[i].capacity.index()] / own_uses_[i].cost);
  most_uses_ += use_count_ - begin;
  make_room(kinds_, kind_count_ + 1);
  make_room(flows_, flow_count_ + 1);
  kinds_[kind_count_] = {weight, alone, nullptr, begin, use_count_ - begin, 1, kNone};
  flows_[flow_count_] = {kind_count_++, kNone, stream, nullptr};
  return flow_count_++;
}

void BandwidthModel::add_own_use(const CapacityUse& use, std::size_t begin) {
  for (std::size_t i = begin; i < use_count_; ++i) {
    if (own_uses_[i].capacity != use.capacity) continue;
    own_uses_[i].cost += use.cost;  // the way crosses this capacity more than once
    return;
  }
  make_room(own_uses_, use_count_ + 1);
  own_uses_[use_count_++] = use;
}

void BandwidthModel::finish(RateRule rule) {
  make_room(groups_, flow_count_);
  make_room(touched_, most_uses_);
  make_room(shares_, most_uses_ + 1);
  active_ = 0;
  changed_count_ = 0;
  group_count_ = share_count_ = row_count_ = 0;
  if (rule == RateRule::Allocated) {
    allocate();
  } else {
    find_demand();
    find_groups();
    find_rows();
  }
  make_room(changed_, group_count_ + 1);
  for (std::size_t g = all_.size(); g < group_count_; ++g) all_.push_back(static_cast<std::uint32_t>(g));
}

// ---- kinds -> groups

/// Which capacities can bind. What an earlier batch left of them is cleared only now: machines are large, batches
/// small.
inline void BandwidthModel::find_demand() {
  constexpr double kClearlyBelow = 1 - 1e-9;  // keeps rounding on the safe side
  touched_count_ = 0;
  for (std::uint32_t k = 0; k < kind_count_; ++k) {
    const Kind& kind = kinds_[k];
    const std::span<const CapacityUse> uses = contested(kind);
    const double demand = kind.alone * kind.flows;
    for (const CapacityUse& use : uses) {
      Capacity& capacity = capacities_[use.capacity.index()];
      if (capacity.epoch != epoch_) {
        capacity = {epoch_, 0, 0, kNone, 0, kNone, false};
        touched_[touched_count_++] = use.capacity.value;
      }
      capacity.flows += kind.flows;
      capacity.demand += demand * use.cost;
    }
  }
  for (std::uint32_t t = 0; t < touched_count_; ++t) {
    Capacity& capacity = capacities_[touched_[t]];
    capacity.binds = capacity.flows > 1 && capacity.demand > values_[touched_[t]] * kClearlyBelow;
  }
}

inline std::uint32_t BandwidthModel::add_group(double weight, double limit) {
  groups_[group_count_] = {0,     limit, kInfinite, limit,        limit,        false,
                           false, 0,     weight,    share_count_, share_count_, kNone};
  return group_count_++;
}

inline void BandwidthModel::find_groups() {
  for (std::uint32_t k = 0; k < kind_count_; ++k) {
    std::uint32_t end = share_count_;
    for (const CapacityUse& use : contested(kinds_[k])) {
      shares_[end] = {use.capacity.value,
                      kinds_[k].weight * use.cost};  // always written, kept where it binds: no branch
      end += capacities_[use.capacity.index()].binds ? 1 : 0;
    }
    kinds_[k].group = find_group(kinds_[k], end);
    groups_[kinds_[k].group].size += kinds_[k].flows;
  }
  for (std::uint32_t f = 0; f < flow_count_; ++f) flows_[f].group = kinds_[flows_[f].kind].group;
}

/// The group of a kind whose shares stand behind those of all groups; a new group keeps them. It is compared with
/// groups that have the same last capacity: on a tree of switches those of one switch.
inline std::uint32_t BandwidthModel::find_group(const Kind& kind, std::uint32_t end) {
  const double limit = kind.alone / kind.weight;
  if (end == share_count_) return add_group(kind.weight, limit);
  std::uint32_t& newest = capacities_[shares_[end - 1].capacity].newest;
  for (std::uint32_t g = newest; g != kNone; g = groups_[g].older)
    if (alike(groups_[g], kind.weight, limit, end)) return g;
  const std::uint32_t g = add_group(kind.weight, limit);
  groups_[g].share_end = end;
  groups_[g].older = std::exchange(newest, g);
  for (; share_count_ < end; ++share_count_) ++capacities_[shares_[share_count_].capacity].groups;
  return g;
}

inline bool BandwidthModel::alike(const Group& group, double weight, double limit, std::uint32_t end) const {
  if (group.weight != weight || group.limit != limit || group.share_end - group.share_begin != end - share_count_)
    return false;
  for (std::uint32_t i = group.share_begin, j = share_count_; j < end; ++i, ++j)
    if (shares_[i] != shares_[j]) return false;
  return true;
}

// ---- groups -> rows

inline void BandwidthModel::find_rows() {
  make_room(rows_, most_uses_);
  make_room(members_, most_uses_);
  std::uint32_t members = 0;
  for (std::size_t t = 0; t < touched_count_; ++t) {
    Capacity& capacity = capacities_[touched_[t]];
    if (capacity.groups < 2) continue;
    capacity.row = row_count_;
    rows_[row_count_++] = {values_[touched_[t]], members, members, false};
    members += capacity.groups;
  }
  for (std::uint32_t g = 0; g < group_count_; ++g) split_shares(g);
}

/// A group's share of a capacity becomes its joint limit or makes it a member of a row.
inline void BandwidthModel::split_shares(std::uint32_t g) {
  Group& group = groups_[g];
  for (std::uint32_t i = group.share_begin; i < group.share_end; ++i) {
    const auto [capacity, load] = shares_[i];
    const std::uint32_t row = capacities_[capacity].row;
    if (row == kNone) {
      group.joint = std::min(group.joint, values_[capacity] / load);
    } else {
      group.competes = true;
      members_[rows_[row].end++] = {g, load};
    }
  }
}

// ---- max-min

std::span<const std::uint32_t> BandwidthModel::solve() {
  bool compete = false;
  for (std::uint32_t i = 0; i < changed_count_; ++i) {
    Group& group = groups_[changed_[i]];
    group.lambda = group.own = std::min(group.limit, group.joint / group.active);
    group.changed = false;
    compete |= group.competes;
  }
  const std::size_t changed = std::exchange(changed_count_, 0);
  if (!compete) return {changed_.data(), changed};
  fill_rows();
  return {all_.data(), group_count_};
}

/// The lambda at which a row is full; infinite where all of its groups at their own lambda cannot fill it.
///
/// From below: with all groups rising until the row is full, with those still rising that are not at their own lambda
/// by then, and so on until none drops out any more.
inline double BandwidthModel::full_at(const Row& row) const {
  double lambda = 0;
  for (std::uint32_t risen = kNone;;) {
    double left = row.value;
    double load = 0;
    std::uint32_t rising = 0;
    for (std::uint32_t m = row.begin; m < row.end; ++m) {
      const Group& group = groups_[members_[m].group];
      const double all = group.active * members_[m].load;
      const bool rises = group.lambda > lambda;
      left -= rises ? 0 : all * group.lambda;
      load += rises ? all : 0;
      rising += rises ? 1 : 0;
    }
    if (load == 0) return kInfinite;
    if (rising == risen) return lambda;
    risen = rising;
    lambda = std::max(lambda, left / load);  // never back, or rounding could go round in circles
  }
}

/// The textbook's filling: the row that is full first settles its groups, and so on with those that are left. As each
/// group's own lambda is taken into account where a row fills, there are as many rounds as rows that get full.
inline void BandwidthModel::fill_rows() {
  for (std::uint32_t g = 0; g < group_count_; ++g) groups_[g].lambda = groups_[g].own;
  if (active_ == 1) return;  // nobody competes
  for (std::uint32_t r = 0; r < row_count_; ++r) rows_[r].open = true;
  for (;;) {
    double lambda = kInfinite;
    Row* first = nullptr;
    for (std::uint32_t r = 0; r < row_count_; ++r) {
      if (!rows_[r].open) continue;
      const double full = full_at(rows_[r]);
      if (full >= lambda) continue;
      lambda = full;
      first = &rows_[r];
    }
    if (first == nullptr) return;
    first->open = false;
    for (std::uint32_t m = first->begin; m < first->end; ++m) {
      double& of_group = groups_[members_[m].group].lambda;
      of_group = std::min(of_group, lambda);
    }
  }
}

// ---- fixed shares

std::span<const CapacityUse> BandwidthModel::all_uses(const Flow& flow) const {
  return flow.way != nullptr ? flow.way->uses : contested(kinds_[flow.kind]);
}

/// Each flow becomes a group of its own, limited to the smallest share on its way: each capacity is split over all
/// streams of the batch that cross it, by weight and cost; streams that take turns on an engine count like any other.
/// @source [VMS14] section 2.4, bandwidth allocation.
void BandwidthModel::allocate() {
  make_room(load_, values_.size());
  make_room(largest_, values_.size());
  for (std::uint32_t f = 0; f < flow_count_; ++f)
    for (const CapacityUse& use : all_uses(flows_[f])) load_[use.capacity.index()] = largest_[use.capacity.index()] = 0;
  // The lead and the data of a staged copy follow each other: the stream counts once, with the larger load.
  for (std::uint32_t begin = 0, end = 0; begin < flow_count_; begin = end) {
    for (end = begin; end < flow_count_ && flows_[end].stream == flows_[begin].stream; ++end)
      for (const CapacityUse& use : all_uses(flows_[end])) {
        double& largest = largest_[use.capacity.index()];
        largest = std::max(largest, weight(end) * use.cost);
      }
    for (std::uint32_t f = begin; f < end; ++f)
      for (const CapacityUse& use : all_uses(flows_[f]))
        load_[use.capacity.index()] += std::exchange(largest_[use.capacity.index()], 0.0);
  }
  for (std::uint32_t f = 0; f < flow_count_; ++f) {
    double lambda = kInfinite;
    for (const CapacityUse& use : all_uses(flows_[f]))
      lambda = std::min(lambda, values_[use.capacity.index()] / load_[use.capacity.index()]);
    flows_[f].group = add_group(weight(f), lambda);
    groups_[flows_[f].group].size = 1;
  }
}

}  // namespace tutti
