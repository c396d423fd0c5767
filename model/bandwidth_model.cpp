#include "model/bandwidth_model.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "model/expects.hpp"
#include "model/room.hpp"

namespace tutti {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr Rate kNoLimit{kInfinite, 0};

}  // namespace

// ---- flows -> kinds

void BandwidthModel::reset(const Topology& machine, Basis basis, std::span<const WayKind> own_ways,
                           std::size_t most_flows) {
  values_ = machine.capacities(basis);
  ways_ = machine.way_kinds();
  own_ways_ = own_ways;
  basis_ = basis;
  table_ = basis == Basis::Nominal ? machine.table() : nullptr;
  streams_ = 0;
  source_ = RateSource::Graph;
  make_room(capacities_, values_.size());
  make_room(kind_of_, ways_.size() + own_ways_.size());
  make_room(kinds_, most_flows + 1);
  for (std::size_t n = inverse_of_.size(); n <= most_flows; ++n) inverse_of_.push_back(1 / static_cast<double>(n));
  if (++epoch_ == 0) {
    for (Capacity& capacity : capacities_) capacity.epoch = 0;
    std::fill(kind_of_.begin(), kind_of_.end(), 0);
    epoch_ = 1;
  }
  kind_count_ = 0;
}

std::uint32_t BandwidthModel::add_fixed_flow(std::uint32_t way, double rate) {
  write_kind(way);
  kinds_[kind_count_].uses = {};
  kinds_[kind_count_].streams = 0;
  kinds_[kind_count_].most = rate;
  return kind_count_++;
}

/// What the measured table says of a stream: which one it is, and how fast it is alone.
void BandwidthModel::write_stream(Kind& kind, StreamSet streams) const {
  kind.streams = streams;
  const std::uint32_t row = table_->row(streams);
  if (row == MeasuredTable::kNoRow) return;
  const double alone = table_->rate(row, streams, static_cast<std::uint32_t>(std::countr_zero(streams))).value;
  kind.alone = kind.capped ? std::min(kind.most, alone) : alone;
}

void BandwidthModel::finish() {
  const auto of_table = [](const Kind& kind) { return kind.streams != 0; };
  const auto kinds_end = kinds_.begin() + kind_count_;
  if (table_ != nullptr && std::none_of(kinds_.begin(), kinds_end, of_table)) table_ = nullptr;
  table_only_ = table_ != nullptr && table_->complete() && std::all_of(kinds_.begin(), kinds_end, of_table);
  if (table_only_) return make_table_groups();
  std::size_t uses = 0;
  for (std::uint32_t k = 0; k < kind_count_; ++k) uses += kinds_[k].uses.size();
  make_room(touched_, uses);
  make_room(shares_, uses + 1);
  make_room(groups_, kind_count_);
  find_demand();
  find_groups();
  find_rows();
}

// ---- kinds -> groups

/// Which capacities can bind. What an earlier batch left of them is cleared only now: machines are large, batches
/// small.
inline void BandwidthModel::find_demand() {
  constexpr double kClearlyBelow = 1 - 1e-9;  // keeps rounding on the safe side
  touched_count_ = 0;
  for (std::uint32_t k = 0; k < kind_count_; ++k) {
    const double demand = kinds_[k].most * kinds_[k].flows;
    for (const CapacityUse& use : kinds_[k].uses) {
      Capacity& capacity = capacities_[use.capacity.index()];
      if (capacity.epoch != epoch_) {
        capacity = {epoch_, 0, 0, kNone, 0, kNone, false, false};
        touched_[touched_count_++] = use.capacity.value;
      }
      capacity.of_table |= kinds_[k].streams != 0;
      capacity.flows += kinds_[k].flows;
      capacity.demand += demand * use.cost;
      capacity.binds = capacity.flows > 1 && capacity.demand > values_[use.capacity.index()] * kClearlyBelow;
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

/// The group of a kind whose shares stand behind those of all groups; a new group keeps them. It is compared with
/// groups that have the same last capacity: on a tree of switches those of one switch.
inline std::uint32_t BandwidthModel::find_group(const Kind& kind, std::uint32_t end) {
  const double limit = kind.most / kind.weight;
  std::uint32_t& newest = end > share_count_ ? capacities_[shares_[end - 1].capacity].newest : newest_free_;
  for (std::uint32_t g = newest; g != kNone; g = groups_[g].older)
    if (alike(groups_[g], kind, limit, end)) return g;
  const Rate own{limit, 1 / limit};
  const bool competes =
      kind.streams == 0 && std::any_of(shares_.begin() + share_count_, shares_.begin() + end,
                                       [&](const Share& share) { return capacities_[share.capacity].of_table; });
  groups_[group_count_] = {own, own,          kNoLimit, kind.weight, 1 / kind.weight, 0,        0,
                           0,   share_count_, end,      newest,      kind.streams,    competes, kind.capped};
  newest = group_count_;
  for (; share_count_ < end; ++share_count_) ++capacities_[shares_[share_count_].capacity].groups;
  return group_count_++;
}

inline bool BandwidthModel::alike(const Group& group, const Kind& kind, double limit, std::uint32_t end) const {
  if (group.weight != kind.weight || group.limit.value != limit || group.streams != kind.streams ||
      group.capped != kind.capped || group.share_end - group.share_begin != end - share_count_)
    return false;
  for (std::uint32_t i = group.share_begin, j = share_count_; j < end; ++i, ++j)
    if (shares_[i] != shares_[j]) return false;
  return true;
}

/// Groups of a batch that needs the table alone: they share nothing, and get their rates by looking up.
void BandwidthModel::make_table_groups() {
  make_room(groups_, kind_count_);
  make_room(caps_, 1);
  caps_[0] = kNoLimit;
  group_count_ = kind_count_;
  share_count_ = row_count_ = 0;
  for (std::uint32_t k = 0; k < kind_count_; ++k) {
    const Rate own{kinds_[k].most, 1 / kinds_[k].most};
    groups_[k] = {own, own, kNoLimit, 1, 1, 0, 0, 0, 0, 0, kNone, kinds_[k].streams, false, kinds_[k].capped};
    kinds_[k].group = k;
  }
}

// ---- groups -> rows

inline void BandwidthModel::find_rows() {
  make_room(rows_, touched_count_);
  make_room(members_, share_count_);
  row_count_ = 0;
  std::uint32_t members = 0;
  for (std::size_t t = 0; t < touched_count_; ++t) {
    Capacity& capacity = capacities_[touched_[t]];
    if (capacity.groups < 2) continue;
    capacity.row = row_count_;
    rows_[row_count_++] = {values_[touched_[t]], members, members, kInfinite, false, capacity.of_table};
    members += capacity.groups;
  }
  make_room(caps_, 1 + group_count_);
  caps_[0] = kNoLimit;
  for (std::uint32_t g = 0; g < group_count_; ++g) split_shares(g);
}

/// A group's share of a capacity becomes its joint limit or makes it a member of a row.
inline void BandwidthModel::split_shares(std::uint32_t g) {
  for (std::uint32_t i = groups_[g].share_begin; i < groups_[g].share_end; ++i) {
    const auto [capacity, load] = shares_[i];
    const std::uint32_t row = capacities_[capacity].row;
    if (row == kNone) {
      groups_[g].joint = groups_[g].joint.at_most({values_[capacity] / load, load / values_[capacity]});
    } else {
      members_[rows_[row].end++] = {g, load};
      groups_[g].cap = row_count_ == 1 ? 1 : 1 + g;
    }
  }
}

// ---- max-min

void BandwidthModel::restart() {
  for (std::uint32_t r = 0; r < row_count_; ++r) rows_[r].lambda = kInfinite;
}

void BandwidthModel::solve() {
  const bool looked_up = table_ != nullptr && look_up();
  share_out(looked_up);
}

/// Gives the streams of the table their rates; false where the table cannot tell.
bool BandwidthModel::look_up() {
  const auto end = groups_.begin() + group_count_;
  const auto competes = [](const Group& group) { return group.active > 0 && group.competes; };
  const std::uint32_t row = table_->row(streams_);
  source_ = row == MeasuredTable::kNoRow ? RateSource::Graph : table_->source(row);
  if (!table_only_) {
    const bool known = row != MeasuredTable::kNoRow && std::none_of(groups_.begin(), end, competes);
    for (std::uint32_t g = 0; g < group_count_; ++g) {
      set_active(groups_[g], groups_[g].active);  // what an earlier look-up wrote is not the group's own
      if (row_count_ > 0) caps_[groups_[g].cap] = kNoLimit;
    }
    if (!known) return source_ = RateSource::Graph, false;
  }
  for (auto group = groups_.begin(); group != end; ++group) {
    if ((group->streams & streams_) == 0) continue;
    const Rate& rate = table_->rate(row, streams_, static_cast<std::uint32_t>(std::countr_zero(group->streams)));
    group->own = {rate.value * group->inverse_weight, rate.inverse * group->weight};
    if (group->capped) group->own = group->own.at_most(group->limit);
  }
  return true;
}

/// @param beside_table  whether what the table's streams share is looked up already.
inline void BandwidthModel::share_out(bool beside_table) {
  if (row_count_ == 1) {
    if (beside_table && rows_[0].of_table) return;
    caps_[1] = full_at<false>(rows_[0]);
    rows_[0].lambda = caps_[1].value;
  } else if (row_count_ > 1) {
    fill_rows(beside_table);
  }
}

/// The lambda at which a row is full; infinite where all of its groups at their own lambda cannot fill it.
///
/// Newton's method: what the groups take of the row grows with lambda, ever more slowly as one after the other stays
/// behind at its own. So a step from anywhere ends at or below the solution, those that follow rise to it, and once
/// nobody else stays behind it is exact. The solution before is a good start: mostly the same groups stay behind.
/// @tparam capped  whether a group's own lambda is what other rows leave of it.
template <bool capped>
inline Rate BandwidthModel::full_at(const Row& row) const {
  const Group* const groups = groups_.data();
  const Member* const end = members_.data() + row.end;
  Rate level{row.lambda, 0};
  double least = 0;
  for (double risen = -1;;) {
    double left = row.value;
    double rising = 0;  // load of the groups that do not stay behind
    for (const Member* m = members_.data() + row.begin; m != end; ++m) {
      const Group& group = groups[m->group];
      const double load = group.demand * m->load;
      const double own = capped ? std::min(group.own.value, caps_[group.cap].value) : group.own.value;
      left -= load * std::min(own, level.value);
      rising += own > level.value ? load : 0;
    }
    if (rising == risen) return level;
    if (rising == 0) {
      if (left >= 0 || risen >= 0) return kNoLimit;
      level.value = 0;  // the start was too far off
      continue;
    }
    risen = rising;
    left += rising * level.value;  // what those that stay behind leave over; below 0 only far above the solution
    level = {std::max(least, left / rising), rising / left};
    least = level.value;  // never back, or rounding could go round in circles
  }
}

/// The textbook's filling: the row that is full first settles its groups, and so on with those that are left. As each
/// group's own lambda is taken into account where a row fills, there are as many rounds as rows that get full.
void BandwidthModel::fill_rows(bool beside_table) {
  for (std::uint32_t g = 0; g < group_count_; ++g) caps_[1 + g] = kNoLimit;
  for (std::uint32_t r = 0; r < row_count_; ++r) rows_[r].open = !(beside_table && rows_[r].of_table);
  for (;;) {
    Rate level = kNoLimit;
    Row* first = nullptr;
    for (std::uint32_t r = 0; r < row_count_; ++r) {
      if (!rows_[r].open) continue;
      const Rate full = full_at<true>(rows_[r]);
      if (full.value >= level.value) continue;
      level = full;
      first = &rows_[r];
    }
    if (first == nullptr) return;
    first->lambda = level.value;
    first->open = false;
    for (std::uint32_t m = first->begin; m < first->end; ++m) {
      Rate& cap = caps_[groups_[members_[m].group].cap];
      cap = cap.at_most(level);
    }
  }
}

}  // namespace tutti
