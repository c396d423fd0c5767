#include "model/sharing/bandwidth_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "model/base/expects.hpp"
#include "model/base/grow_to.hpp"

namespace tutti::internal {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr Rate kNoLimit{kInfinite, 0};

}  // namespace

/// Sets a new group of this kind; shares, and whether it competes, are set behind. Field by field: a group put together
/// elsewhere and copied here would be read before it is written.
inline void BandwidthModel::Group::begin(const Kind& kind, Rate weights, Rate most, std::uint32_t next_older) {
  own = limit = most;
  joint = kNoLimit;
  weight = weights.value;
  inverse_weight = weights.inverse;
  demand = 0;
  active = cap = row_begin = row_end = 0;
  older = next_older;
  port = kind.port;
  capped = kind.capped;
}

// ---- flows -> kinds

void BandwidthModel::reset(const Topology& machine, Basis basis, std::span<const RouteClass> own_classes,
                           std::size_t most_flows) {
  values_ = machine.capacities(basis);
  classes_ = machine.route_classes();
  own_classes_ = own_classes;
  basis_ = basis;
  table_ = basis == Basis::Nominal ? machine.table() : nullptr;
  active_.clear();
  looked_up_ = LookedUp::None;
  further_ = table_only_ = false;
  grow_to(capacities_, values_.size());
  grow_to(kind_of_, classes_.size() + own_classes_.size());
  grow_to(kinds_, most_flows + 1);
  grow_to(turns_, most_flows + 1);
  for (std::size_t n = inverse_of_.size(); n <= most_flows; ++n) inverse_of_.push_back(1 / static_cast<double>(n));
  if (++epoch_ == 0) {
    for (Capacity& capacity : capacities_) capacity.epoch = 0;
    std::fill(kind_of_.begin(), kind_of_.end(), 0);
    epoch_ = 1;
  }
  kind_count_ = turn_count_ = 0;
}

std::uint32_t BandwidthModel::add_fixed_flow(std::uint32_t index, double rate) {
  write_kind(index);
  kinds_[kind_count_].uses = {};
  kinds_[kind_count_].port = kNoPort;
  kinds_[kind_count_].most = rate;
  return kind_count_++;
}

/// Sets a kind's port in the measured table, and its rate alone.
void BandwidthModel::write_port(Kind& kind, PortId port) const {
  kind.port = port;
  const double alone = table_->alone(port);
  if (alone == 0) return;
  kind.alone = kind.capped ? std::min(kind.most, alone) : alone;
}

void BandwidthModel::finish() {
  if (table_ != nullptr) {
    std::uint32_t of_table = 0, of_first = 0;
    for (std::uint32_t k = 0; k < kind_count_; ++k) {
      of_table += kinds_[k].port != kNoPort ? 1 : 0;
      of_first += is_first(kinds_[k].port) ? 1 : 0;
    }
    further_ = of_first < of_table;
    table_only_ = table_->complete() && of_first == kind_count_;
    if (of_table == 0) table_ = nullptr;
  }
  if (table_only_) return make_table_groups();
  std::size_t uses = 0;
  for (std::uint32_t k = 0; k < kind_count_; ++k) uses += kinds_[k].uses.size();
  grow_to(touched_, uses);
  grow_to(shares_, uses + 1);
  grow_to(groups_, kind_count_);
  find_demand();
  find_groups();
  find_rows();
}

// ---- kinds -> groups

/// Finds the capacities that can bind: an engine queue takes no more of one than its largest flow. Entries of an
/// earlier batch are cleared only here, where used: machines are large, batches small.
inline void BandwidthModel::find_demand() {
  constexpr double kClearlyBelow = 1 - 1e-9;  // keeps rounding on the safe side
  touched_count_ = 0;
  for (std::uint32_t t = 0; t < turn_count_; ++t) {
    const auto [k, queue] = turns_[t];
    for (const CapacityUse& use : kinds_[k].uses) {
      Capacity& capacity = capacities_[use.capacity.index()];
      if (capacity.epoch != epoch_) {
        capacity = {epoch_, kNone, 0, 0, 0, kNone, 0, kNone, false, false, false};
        touched_[touched_count_++] = use.capacity.value;
      }
      const bool same_queue = capacity.queue == queue && queue != kNone;
      const double before = same_queue ? capacity.of_queue : 0;
      const double most = std::max(before, kinds_[k].most * use.cost);
      capacity.queue = queue;
      capacity.queues += same_queue ? 0 : 1;
      capacity.demand += most - before;
      capacity.of_queue = most;
      capacity.of_table |= kinds_[k].port != kNoPort;
      capacity.of_first |= is_first(kinds_[k].port);
      capacity.binds = capacity.queues > 1 && capacity.demand > values_[use.capacity.index()] * kClearlyBelow;
    }
  }
}

inline void BandwidthModel::find_groups() {
  group_count_ = share_count_ = 0;
  newest_free_ = kNone;
  for (std::uint32_t k = 0; k < kind_count_; ++k) {
    Kind& kind = kinds_[k];
    std::uint32_t end = share_count_;
    for (const CapacityUse& use : kind.uses) {  // always written, kept where it binds: no branch
      shares_[end] = {use.capacity.value, kind.weight * use.cost};
      end += capacities_[use.capacity.index()].binds ? 1 : 0;
    }
    kind.group = find_group(kind, end);
  }
}

/// The group of a kind, whose shares are stored behind those of all groups; a new group keeps them. The kind is
/// compared with groups of the same last capacity: on a tree of switches, groups of one switch.
inline std::uint32_t BandwidthModel::find_group(const Kind& kind, std::uint32_t end) {
  const double limit = kind.most / kind.weight;
  std::uint32_t& newest = end > share_count_ ? capacities_[shares_[end - 1].capacity].newest : newest_free_;
  for (std::uint32_t g = newest; g != kNone; g = groups_[g].older)
    if (belongs_to(groups_[g], kind, limit, end)) return g;
  const bool first = is_first(kind.port);
  bool meets_table = false, meets_first = false;
  for (std::uint32_t i = share_count_; table_ != nullptr && i < end; ++i) {
    meets_table |= capacities_[shares_[i].capacity].of_table;
    meets_first |= capacities_[shares_[i].capacity].of_first;
  }
  Group& group = groups_[group_count_];
  group.begin(kind, {kind.weight, 1 / kind.weight}, {limit, 1 / limit}, newest);
  group.share_begin = share_count_;
  group.share_end = end;
  group.first = first;
  group.competes = kind.port == kNoPort && meets_table;
  group.competes_with_first = !first && meets_first;
  newest = group_count_;
  for (; share_count_ < end; ++share_count_) ++capacities_[shares_[share_count_].capacity].groups;
  return group_count_++;
}

inline bool BandwidthModel::belongs_to(const Group& group, const Kind& kind, double limit, std::uint32_t end) const {
  if (group.weight != kind.weight || group.limit.value != limit || group.port != kind.port ||
      group.capped != kind.capped || group.share_end - group.share_begin != end - share_count_)
    return false;
  for (std::uint32_t i = group.share_begin, j = share_count_; j < end; ++i, ++j)
    if (shares_[i] != shares_[j]) return false;
  return true;
}

/// Groups of a batch that needs the table alone: they share nothing, and their rates are looked up.
void BandwidthModel::make_table_groups() {
  grow_to(groups_, kind_count_);
  grow_to(caps_, 1);
  caps_[0] = kNoLimit;
  group_count_ = kind_count_;
  share_count_ = row_count_ = 0;
  for (std::uint32_t k = 0; k < kind_count_; ++k) {
    groups_[k].begin(kinds_[k], {1, 1}, {kinds_[k].most, 1 / kinds_[k].most}, kNone);
    groups_[k].share_begin = groups_[k].share_end = 0;
    groups_[k].first = true;
    groups_[k].competes = groups_[k].competes_with_first = false;
    kinds_[k].group = k;
  }
}

// ---- groups -> rows

inline void BandwidthModel::find_rows() {
  grow_to(rows_, touched_count_);
  grow_to(members_, share_count_);
  row_count_ = 0;
  std::uint32_t members = 0;
  for (std::size_t t = 0; t < touched_count_; ++t) {
    Capacity& capacity = capacities_[touched_[t]];
    if (capacity.groups < 2) continue;
    capacity.row = row_count_;
    rows_[row_count_++] = {.value = values_[touched_[t]],
                           .begin = members,
                           .end = members,
                           .lambda = kInfinite,
                           .of_table = capacity.of_table,
                           .of_first = capacity.of_first,
                           .settled = false,
                           .known = false,
                           .place = kNone,
                           .level = kNoLimit,
                           .full = kNoLimit,
                           .key = 0};
    members += capacity.groups;
  }
  grow_to(caps_, 1 + group_count_);
  caps_[0] = kNoLimit;
  if (row_count_ > 1) {
    grow_to(rows_of_, members);
    grow_to(lowest_, group_count_);
    grow_to(takers_, group_count_);
    grow_to(waiting_, row_count_);
  }
  rows_of_count_ = 0;
  for (std::uint32_t g = 0; g < group_count_; ++g) split_shares(g);
  forget_levels();
}

/// A group's share of a capacity becomes its joint limit or makes it a member of a row.
inline void BandwidthModel::split_shares(std::uint32_t g) {
  groups_[g].row_begin = rows_of_count_;
  for (std::uint32_t i = groups_[g].share_begin; i < groups_[g].share_end; ++i) {
    const auto [capacity, load] = shares_[i];
    const std::uint32_t row = capacities_[capacity].row;
    if (row == kNone) {
      groups_[g].joint = groups_[g].joint.at_most({values_[capacity] / load, load / values_[capacity]});
    } else {
      members_[rows_[row].end++] = {g, load};
      groups_[g].cap = row_count_ == 1 ? 1 : 1 + g;
      if (row_count_ > 1) rows_of_[rows_of_count_++] = row;
    }
  }
  groups_[g].row_end = rows_of_count_;
}

// ---- max-min

void BandwidthModel::restart() {
  for (std::uint32_t r = 0; r < row_count_; ++r) rows_[r].lambda = kInfinite;
  forget_levels();
}

void BandwidthModel::solve() {
  looked_up_ = table_ != nullptr ? look_up() : LookedUp::None;
  share_out();
}

/// Looks up the rates at the active ports of the table, or else at those of the first memory.
BandwidthModel::LookedUp BandwidthModel::look_up() {
  const auto end = groups_.begin() + group_count_;
  const auto competes = [](const Group& group) { return group.active > 0 && group.competes; };
  const auto competes_with_first = [](const Group& group) { return group.active > 0 && group.competes_with_first; };
  if (!table_only_) {
    for (std::uint32_t g = 0; g < group_count_; ++g) {
      set_active(groups_[g], groups_[g].active);  // undoes an earlier look-up
      if (row_count_ > 0) caps_[groups_[g].cap] = kNoLimit;
    }
  }
  const std::uint32_t row = table_->row(active_);
  if (table_only_ || (row != MeasuredTable::kNoRow && std::none_of(groups_.begin(), end, competes))) {
    take_from_table(row, active_, LookedUp::All);
    return LookedUp::All;
  }
  if (!further_) return LookedUp::None;
  const PortSet first = table_->first_of(active_);
  const std::uint32_t row_of_first = table_->row(first);
  if (row_of_first == MeasuredTable::kNoRow || std::any_of(groups_.begin(), end, competes_with_first))
    return LookedUp::None;
  take_from_table(row_of_first, first, LookedUp::FirstMemory);
  return LookedUp::FirstMemory;
}

/// @param ports  the row's combination
inline void BandwidthModel::take_from_table(std::uint32_t row, const PortSet& ports, LookedUp of) {
  source_ = row == MeasuredTable::kNoRow ? RateSource::Graph : table_->source(row);
  const MeasuredTable::RowRates rates = table_->rates(row, ports);
  for (std::uint32_t g = 0; g < group_count_; ++g) {
    Group& group = groups_[g];
    if (group.active == 0 || group.port == kNoPort || (of == LookedUp::FirstMemory && !group.first)) continue;
    const Rate& rate = rates.at(group.port);
    group.own = {rate.value * group.inverse_weight, rate.inverse * group.weight};
    if (group.capped) group.own = group.own.at_most(group.limit);
  }
}

/// Shares out among all groups that have no looked-up rates.
inline void BandwidthModel::share_out() {
  if (row_count_ == 1) {
    if (is_looked_up(rows_[0])) return;
    caps_[1] = full_at(rows_[0]);
    rows_[0].lambda = caps_[1].value;
  } else if (row_count_ > 1) {
    // Above this number of changes, which exact arithmetic never needs, rounding goes round in circles.
    if (table_ != nullptr || !fill_rows(16 * row_count_ + 64, false)) fill_rows_anew();
  }
}

/// The lambda at which a row is full; infinite where all of its groups at their own lambda cannot fill it.
///
/// Newton's method: the groups' demand on the row is concave in lambda, as one group after the other reaches its own
/// lambda. So a step from anywhere ends at or below the solution, later steps rise to it, and the result is exact once
/// no further group reaches its own lambda. The previous solution is a good start: mostly the same groups are at their
/// own.
inline Rate BandwidthModel::full_at(const Row& row) const {
  const Group* const groups = groups_.data();
  const Member* const end = members_.data() + row.end;
  Rate level{row.lambda, 0};
  double least = 0;
  for (double risen = -1;;) {
    double left = row.value;
    double rising = 0;  // load of the groups below their own lambda
    for (const Member* m = members_.data() + row.begin; m != end; ++m) {
      const Group& group = groups[m->group];
      const double load = group.demand * m->load;
      left -= load * std::min(group.own.value, level.value);
      rising += group.own.value > level.value ? load : 0;
    }
    if (rising == risen) return level;
    if (rising == 0) {
      if (left >= 0 || risen >= 0) return kNoLimit;
      level.value = 0;  // the start was too far off
      continue;
    }
    risen = rising;
    left += rising * level.value;  // left by the groups at their own lambda; below 0 only far above the solution
    level = {std::max(least, left / rising), rising / left};
    least = level.value;  // never back, or rounding could go round in circles
  }
}

// ---- several rows
//
// In exact arithmetic, the levels are right where each row is full at its level, given the levels of the others: a rate
// is max-min where it crosses a full row in which no flow has more. The lambda at which a row is full depends on lower
// levels alone, so levels are corrected from below, as in Dijkstra's algorithm: among the rows whose level may be
// wrong, the one with the lowest min(level, full) is next. So rows that a start or stop does not reach are not visited.
// @source [RR96]: changes of the input of a fixed point, those of a shortest path in the paper.

void BandwidthModel::forget_levels() {
  waiting_count_ = 0;
  if (row_count_ < 2) return;
  for (std::uint32_t r = 0; r < row_count_; ++r) {
    rows_[r].place = kNone;
    rows_[r].level = kNoLimit;
    rows_[r].settled = false;
  }
  for (std::uint32_t g = 0; g < group_count_; ++g) {
    caps_[1 + g] = kNoLimit;
    lowest_[g] = {kNone, kInfinite};
  }
}

/// Progressive filling: the row that is full first settles its groups, then the next row the remaining ones.
void BandwidthModel::fill_rows_anew() {
  forget_levels();
  for (std::uint32_t r = 0; r < row_count_; ++r) {
    rows_[r].settled = is_looked_up(rows_[r]);
    if (!rows_[r].settled) look_again(r, 0);
  }
  fill_rows(row_count_, true);
  for (std::uint32_t r = 0; r < row_count_; ++r) rows_[r].settled = false;
}

/// Corrects the levels of all waiting rows, and of the rows that they reach.
/// @param settle  whether a row keeps its level once set.
/// @return false where some levels are still wrong after `most_changes` changes.
bool BandwidthModel::fill_rows(std::uint32_t most_changes, bool settle) {
  constexpr double kSame = 1e-13;  // relative, the rounding of sums
  while (waiting_count_ > 0) {
    const std::uint32_t r = waiting_[0];
    Row& row = rows_[r];
    if (!row.known) {
      row.full = full_beside_others(r);
      row.known = true;
      const double lower = std::min(row.level.value, row.full.value);
      if (row.level == row.full || std::abs(row.level.value - row.full.value) <= kSame * lower) {
        take_off_first();
        continue;
      }
      if (lower > row.key) {
        row.key = lower;
        sift_down(r, 0);
        continue;
      }
    }
    if (most_changes-- == 0) return false;
    take_off_first();
    set_level(r, row.full);
    row.settled = settle;
  }
  return true;
}

/// Changes a row's level; other rows of its groups are checked again.
inline void BandwidthModel::set_level(std::uint32_t r, Rate level) {
  rows_[r].level = level;
  for (std::uint32_t m = rows_[r].begin; m < rows_[r].end; ++m) {
    const std::uint32_t g = members_[m].group;
    const Group& group = groups_[g];
    const Lowest lowest = lowest_[g];
    const double cap = caps_[1 + g].value;
    find_lowest(g);
    if (group.active == 0) continue;
    for (std::uint32_t i = group.row_begin; i < group.row_end; ++i) {
      const std::uint32_t other = rows_of_[i];
      if (other == r) continue;
      const double was = lowest.row == other ? lowest.others : cap;
      touch(other, std::min(was, group.own.value), std::min(level_of_others(g, other), group.own.value));
    }
  }
}

/// A group's lambda without this row changes from `was` to `is`: the row may be full at another level.
inline void BandwidthModel::touch(std::uint32_t r, double was, double is) {
  const Row& row = rows_[r];
  if (was == is || row.settled) return;
  const bool falls = is < was;
  if (!row.waits()) {
    if (std::min(was, is) >= row.level.value) return;  // the row's level limits it before and after
    if (falls && !row.is_full()) return;
  }
  look_again(r, falls ? row.level.value : std::min(was, row.level.value));
}

/// The lambda at which a row is full while other rows keep their levels; no limit where its groups cannot fill it.
/// Newton's method as above, on the groups that are active.
inline Rate BandwidthModel::full_beside_others(std::uint32_t r) {
  constexpr double kFull = 1 + 1e-13;  // a demand within rounding of the capacity does not fill the row
  Row& row = rows_[r];
  Taker* const takers = takers_.data();
  Taker* end = takers;
  double most = 0;
  for (std::uint32_t m = row.begin; m < row.end; ++m) {
    const auto [g, load] = members_[m];
    const Group& group = groups_[g];
    *end = {std::min(group.own.value, level_of_others(g, r)), group.demand * load};
    if (group.active == 0) continue;  // the entry is dropped: without flows its lambda means nothing
    most += end->own * end->load;
    ++end;
  }
  if (most <= row.value * kFull) return kNoLimit;
  double level = row.lambda;
  double least = 0;
  for (double risen = -1;;) {
    double left = row.value;  // by the groups at their own lambda
    double rising = 0;        // load of the other groups
    for (const Taker* t = takers; t != end; ++t) {
      const bool rises = t->own > level;
      left -= rises ? 0 : t->own * t->load;
      rising += rises ? t->load : 0;
    }
    if (rising == risen) {
      row.lambda = level;
      return {level, rising / left};
    }
    if (rising == 0) {
      if (risen >= 0) return kNoLimit;
      level = 0;  // the start was too far off
      continue;
    }
    risen = rising;
    level = std::max(least, left / rising);
    least = level;  // never back, or rounding could go round in circles
  }
}

inline void BandwidthModel::find_lowest(std::uint32_t g) {
  Rate cap = kNoLimit;
  Lowest lowest{kNone, kInfinite};
  for (std::uint32_t i = groups_[g].row_begin; i < groups_[g].row_end; ++i) {
    const Rate& level = rows_[rows_of_[i]].level;
    if (level.value < cap.value) {
      lowest = {rows_of_[i], cap.value};
      cap = level;
    } else {
      lowest.others = std::min(lowest.others, level.value);
    }
  }
  caps_[1 + g] = cap;
  lowest_[g] = lowest;
}

// ---- rows that wait to be looked at

/// @param key  lower bound on the row's level and on the lambda at which it is full now.
void BandwidthModel::look_again(std::uint32_t r, double key) {
  Row& row = rows_[r];
  row.known = false;
  if (!row.waits()) {
    row.place = waiting_count_++;
    row.key = key;
  } else if (key < row.key) {
    row.key = key;
  } else {
    return;
  }
  sift_up(r, row.place);
}

void BandwidthModel::take_off_first() {
  rows_[waiting_[0]].place = kNone;
  if (--waiting_count_ == 0) return;
  sift_down(waiting_[waiting_count_], 0);
}

/// Moves a row up from a place that is free for it.
void BandwidthModel::sift_up(std::uint32_t r, std::uint32_t place) {
  while (place > 0) {
    const std::uint32_t parent = (place - 1) / 2;
    if (rows_[waiting_[parent]].key <= rows_[r].key) break;
    put(waiting_[parent], place);
    place = parent;
  }
  put(r, place);
}

/// Moves a row down from a place that is free for it.
void BandwidthModel::sift_down(std::uint32_t r, std::uint32_t place) {
  for (std::uint32_t child; (child = 2 * place + 1) < waiting_count_; place = child) {
    if (child + 1 < waiting_count_ && rows_[waiting_[child + 1]].key < rows_[waiting_[child]].key) ++child;
    if (rows_[r].key <= rows_[waiting_[child]].key) break;
    put(waiting_[child], place);
  }
  put(r, place);
}

}  // namespace tutti::internal
