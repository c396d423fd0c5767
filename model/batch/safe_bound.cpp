#include "model/batch/safe_bound.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/base/grow_to.hpp"
#include "model/batch/service_order.hpp"

namespace tutti::internal {
namespace {

constexpr double kNoFinish = std::numeric_limits<double>::infinity();

/// Limit on the number of windows: any selection is safe.
constexpr std::size_t kMostWindows = 64;
/// Approximate limit on searches of a capacity's rivals for the sake of windows.
constexpr std::size_t kMostLooks = 8'000'000;
/// Limit on distinguished steps of a group that may start later than the end of the one before.
constexpr std::uint32_t kMostAnchors = 8;
/// A run of several kinds of flow is bounded as a whole at each step up to `kLongMixedRun`, and beyond that at every
/// `kMixedRunStep`-th.
constexpr std::uint32_t kLongMixedRun = 256, kMixedRunStep = 64;

/// A smaller gain is not worth another round.
constexpr double kClearlyBelow = 1 - 1e-3;

/// Keeps rounding on the safe side.
double slightly_later(double ns) { return ns * (1 + 1e-14); }

/// A sum without one of its parts, rounded up: a small rest of large parts contains their rounding.
double without(double sum, double part) { return sum - part + sum * 0x1p-50; }

}  // namespace

// ---- steps that share capacities

void SafeBound::find(std::span<const double> capacities, std::span<BoundedStep> steps) {
  constexpr int kRounds = 3;
  if (steps.empty()) return;
  list_groups(steps);
  list_capacities(capacities, steps);
  list_shares(steps);
  for (BoundedStep& step : steps) step.finish = kNoFinish;
  for (std::uint32_t s = 0; s < steps.size(); ++s) {
    bound_at_once(steps, s);
    narrow_shares(steps[s], s);
  }
  if (shares_.empty()) return;
  for (int round = 0; round < kRounds; ++round) {
    make_windows(steps.size());
    bool narrower = false;
    followed_ = kNone;
    for (std::uint32_t s = 0; s < steps.size(); ++s) {
      narrower |= bound_by_windows(steps, s);
      narrow_shares(steps[s], s);
    }
    if (!narrower) break;
  }
}

/// Puts the steps of each group behind each other, and sums up their volumes and times.
void SafeBound::list_groups(std::span<BoundedStep> steps) {
  std::uint32_t count = 0;
  for (const BoundedStep& step : steps)
    if (step.group != kNone) count = std::max(count, step.group + 1);
  groups_.assign(count, {});
  for (const BoundedStep& step : steps)
    if (step.group != kNone) ++groups_[step.group].end;
  std::uint32_t next = 0;
  for (Group& group : groups_) {
    group.begin = next;
    next += std::exchange(group.end, next);
  }
  grow_to(members_, next);
  grow_to(volumes_, next);
  grow_to(times_, next);
  grow_to(place_, steps.size());
  grow_to(next_kind_, steps.size());
  grow_to(anchors_, std::size_t{count} * kMostAnchors);
  for (std::uint32_t s = 0; s < steps.size(); ++s) {
    const BoundedStep& step = steps[s];
    if (step.group == kNone) continue;
    Group& group = groups_[step.group];
    const std::uint32_t at = group.end++;
    const bool first = at == group.begin;
    members_[at] = s;
    place_[s] = at;
    volumes_[at] = (first ? 0 : volumes_[at - 1]) + step.bytes / step.weight;
    times_[at] = (first ? 0 : times_[at - 1]) + step.time;
    if (step.bytes > 0) find_kind(steps, s);
  }
}

static bool flow_alike(const BoundedStep& a, const BoundedStep& b) {
  if (a.weight != b.weight || a.alone != b.alone || a.uses.size() != b.uses.size()) return false;
  return a.uses.data() == b.uses.data() || std::equal(a.uses.begin(), a.uses.end(), b.uses.begin());
}

inline void SafeBound::find_kind(std::span<BoundedStep> steps, std::uint32_t s) {
  Group& group = groups_[steps[s].group];
  std::uint32_t* kind = &group.flow;
  while (*kind != kNone && !flow_alike(steps[*kind], steps[s])) kind = &next_kind_[*kind];
  if (*kind == kNone) {
    *kind = s;
    next_kind_[s] = kNone;
  }
  steps[s].kind = *kind;
  group.one_kind &= *kind == group.flow;
}

/// Finds the capacities that count for themselves.
void SafeBound::list_capacities(std::span<const double> values, std::span<const BoundedStep> steps) {
  grow_to(capacities_, values.size());
  if (++epoch_ == 0) {
    for (Capacity& capacity : capacities_) capacity.epoch = 0;
    epoch_ = 1;
  }
  used_.clear();
  for (const Group& group : groups_)
    for (std::uint32_t kind = group.flow; kind != kNone; kind = next_kind_[kind])
      look_at_uses(values, steps[kind].uses);
  // Of those that could count with each other, the one that is left counts.
  std::erase_if(used_, [&](std::uint32_t c) {
    Capacity& capacity = capacities_[c];
    const auto wider = std::span(capacity.wider).first(capacity.wider_count);
    capacity.counts = std::ranges::none_of(wider, [&](std::uint32_t other) { return capacities_[other].counts; });
    return !capacity.counts;
  });
}

/// Adds the capacities of a flow, and takes from each those that it could count with but for this flow.
inline void SafeBound::look_at_uses(std::span<const double> values, std::span<const CapacityUse> uses) {
  const auto is_wider = [&](const CapacityUse& other, const CapacityUse& use) {
    return other.capacity != use.capacity &&
           other.cost / values[other.capacity.index()] >= use.cost / values[use.capacity.index()];
  };
  for (const CapacityUse& use : uses) {
    Capacity& capacity = capacities_[use.capacity.index()];
    if (capacity.epoch != epoch_) {
      capacity = {.inverse = 1 / values[use.capacity.index()], .epoch = epoch_};
      used_.push_back(use.capacity.value);
      for (const CapacityUse& other : uses)
        if (is_wider(other, use) && capacity.wider_count < kMostWider)
          capacity.wider[capacity.wider_count++] = other.capacity.value;
      continue;
    }
    const auto is_none = [&](std::uint32_t wider) {
      const auto other = std::ranges::find(uses, wider, [](const CapacityUse& each) { return each.capacity.value; });
      return other == uses.end() || !is_wider(*other, use);
    };
    const auto begin = capacity.wider.begin();
    capacity.wider_count =
        static_cast<std::uint32_t>(std::remove_if(begin, begin + capacity.wider_count, is_none) - begin);
  }
}

void SafeBound::list_shares(std::span<const BoundedStep> steps) {
  found_.clear();
  share_capacity_.clear();
  pieces_.clear();
  for (const Group& group : groups_)
    for (std::uint32_t m = group.begin; m < group.end; ++m) {
      const BoundedStep& step = steps[members_[m]];
      if (step.bytes == 0) continue;
      for (const CapacityUse& use : step.uses)
        if (capacities_[use.capacity.index()].counts) add_share(step, members_[m], use);
    }
  list_events();
}

inline void SafeBound::add_share(const BoundedStep& step, std::uint32_t position, const CapacityUse& use) {
  Capacity& capacity = capacities_[use.capacity.index()];
  if (capacity.newest == kNone || found_[capacity.newest].group != step.group) {
    capacity.newest = static_cast<std::uint32_t>(found_.size());
    found_.push_back({0, step.earliest, kNoFinish, step.group, step.locks, position, kNone});
    share_capacity_.push_back(use.capacity.value);
    ++capacity.shares_end;  // counts, at first
  }
  Share& share = found_[capacity.newest];
  const double load = step.weight * use.cost;
  share.load = std::max(share.load, load);
  share.earliest = std::min(share.earliest, step.earliest);
  share.last = position;
  for (std::uint32_t& lock : share.locks)
    if (lock != step.locks[0] && lock != step.locks[1]) lock = kNone;
  // Sorted by load, the largest first.
  std::uint32_t* at = &share.pieces;
  while (*at != kNone && pieces_[*at].load > load) at = &pieces_[*at].next;
  if (*at != kNone && pieces_[*at].load == load) {
    pieces_[*at].volume += step.bytes / step.weight;
    return;
  }
  const auto piece = static_cast<std::uint32_t>(pieces_.size());
  const std::uint32_t next = std::exchange(*at, piece);
  pieces_.push_back({load, step.bytes / step.weight, next});
  ++capacity.events_end;  // counts, at first
}

/// Puts shares and events of each capacity behind each other.
void SafeBound::list_events() {
  shares_.resize(found_.size());
  events_.resize(pieces_.size());
  std::uint32_t next_share = 0, next_event = 0;
  for (const std::uint32_t c : used_) {
    Capacity& capacity = capacities_[c];
    capacity.shares_begin = next_share;
    next_share += std::exchange(capacity.shares_end, next_share);
    capacity.events_begin = next_event;
    next_event += std::exchange(capacity.events_end, next_event);
  }
  for (std::size_t s = 0; s < found_.size(); ++s) {
    Capacity& capacity = capacities_[share_capacity_[s]];
    const std::uint32_t share = capacity.shares_end++;
    shares_[share] = found_[s];
    double limit = 0;
    for (std::uint32_t p = found_[s].pieces; p != kNone; p = pieces_[p].next) {
      limit += pieces_[p].volume;
      const double below = pieces_[p].next == kNone ? 0 : pieces_[pieces_[p].next].load;
      events_[capacity.events_end++] = {limit, pieces_[p].load - below, share};
    }
  }
  for (const std::uint32_t c : used_)
    std::sort(events_.begin() + capacities_[c].events_begin, events_.begin() + capacities_[c].events_end,
              [](const Event& a, const Event& b) { return a.limit < b.limit; });
}

/// Cuts time where groups may start to use a capacity or must be done with it.
void SafeBound::make_windows(std::size_t steps) {
  cuts_.clear();
  for (const Share& share : shares_) {
    cuts_.push_back(share.earliest);
    cuts_.push_back(share.finish);
  }
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
  const std::size_t looks = steps * shares_.size() / used_.size();
  const std::size_t most = std::clamp(kMostLooks / std::max<std::size_t>(looks, 1), std::size_t{4}, kMostWindows);
  if (cuts_.size() > most) {
    const std::size_t all = cuts_.size();
    for (std::size_t i = 0; i < most; ++i) cuts_[i] = cuts_[i * all / most];
    cuts_.resize(most);
  }
  if (cuts_.back() < kNoFinish) cuts_.push_back(kNoFinish);
}

/// Ends a share with the finish of its last step: it is no rival after that.
inline void SafeBound::narrow_shares(const BoundedStep& step, std::uint32_t position) {
  if (step.bytes == 0) return;
  for (const CapacityUse& use : step.uses) {
    const Capacity& capacity = capacities_[use.capacity.index()];
    for (std::uint32_t s = capacity.shares_begin; s < capacity.shares_end; ++s)
      if (shares_[s].last == position) shares_[s].finish = std::min(shares_[s].finish, step.finish);
  }
}

// ---- one step

double SafeBound::finish_before(std::span<const BoundedStep> steps, const BoundedStep& step, std::size_t i) {
  const std::uint32_t before = step.after[i];
  if (before == kNone) return 0;
  const bool is_other = i > 0 && before != step.after[0];
  return steps[before].finish + (is_other ? step.unpaid : 0);
}

double SafeBound::start_of(std::span<const BoundedStep> steps, const BoundedStep& step) {
  double start = step.release;
  for (std::size_t i = 0; i < step.after.size(); ++i) start = std::max(start, finish_before(steps, step, i));
  return start;
}

/// The instant from which on only the step before it in its group holds a step back.
double SafeBound::released(std::span<const BoundedStep> steps, std::uint32_t s) const {
  const BoundedStep& step = steps[s];
  const std::uint32_t at = place_[s];
  const std::uint32_t before = at == groups_[step.group].begin ? kNone : members_[at - 1];
  double released = step.release;
  for (std::size_t i = 0; i < step.after.size(); ++i)
    if (step.after[i] != before) released = std::max(released, finish_before(steps, step, i));
  return released;
}

/// Bounds a step's finish without windows: by its own length after its own start, and by the length of the run from the
/// last step of its group that had to wait for something else, whichever that was.
void SafeBound::bound_at_once(std::span<BoundedStep> steps, std::uint32_t s) {
  BoundedStep& step = steps[s];
  const double start = start_of(steps, step);
  if (step.group == kNone) {
    step.finish = slightly_later(start + step.time);
    return;
  }
  Group& group = groups_[step.group];
  Anchor* const anchors = anchors_.data() + std::size_t{step.group} * kMostAnchors;
  const std::uint32_t at = place_[s];
  const double here = released(steps, s);
  if (group.anchors == 0 || here > anchors[group.anchors - 1].release) {
    if (group.anchors == kMostAnchors) {  // two become one: member of the first, release of the second
      anchors[0].release = anchors[1].release;
      std::move(anchors + 2, anchors + kMostAnchors, anchors + 1);
      --group.anchors;
    }
    anchors[group.anchors++] = {at, here};
  }
  const bool joint =
      group.one_kind || at - anchors[0].member < kLongMixedRun || at % kMixedRunStep == 0 || at + 1 == group.end;
  double finish = joint ? 0 : kNoFinish;
  if (joint)
    for (std::uint32_t a = 0; a < group.anchors; ++a)
      finish = std::max(finish, slightly_later(anchors[a].release + run_length(steps, anchors[a].member, at)));
  if (step.bytes == 0) {
    finish = std::min(finish, slightly_later(start + step.time));
  } else if (!joint || group.anchors > 1) {
    finish = std::min(finish, slightly_later(start + run_length(steps, at, at)));
  }
  step.finish = std::max(start, finish);
}

/// Longest duration of a group's steps `from` ... `to`, one behind the other.
double SafeBound::run_length(std::span<const BoundedStep> steps, std::uint32_t from, std::uint32_t to) {
  const BoundedStep& first = steps[members_[from]];
  const BoundedStep& last = steps[members_[to]];
  const Group& group = groups_[last.group];
  const double time = times_[to] - (from == group.begin ? 0 : times_[from] - first.time);
  filter_ = {last.group, from == to ? last.locks : std::array{kNone, kNone}, -kNoFinish, kNoFinish};
  if (!group.one_kind) {
    const double volume = begin_run(steps, from, to, filter_);
    return slightly_later(time) + (links_.empty() ? 0 : hand_out<true>(filter_, volume, kNoFinish).time);
  }
  double volume = volumes_[to];
  if (from > group.begin) volume = without(volume, volumes_[from] - first.bytes / first.weight);
  if (!(volume > 0)) return time;
  begin_flow(steps[group.flow], filter_);
  return slightly_later(time) + hand_out<false>(filter_, volume, kNoFinish).time;
}

/// Bounds a step's finish window by window: its flow alone, or continued from the step before it. It goes on behind
/// that one only if nothing else holds it back later than where the flow began: else the one before may be over early,
/// and rivals have their bytes left.
/// @return whether the finish is clearly earlier than before.
bool SafeBound::bound_by_windows(std::span<BoundedStep> steps, std::uint32_t s) {
  BoundedStep& step = steps[s];
  const double before = step.finish;
  const double start = start_of(steps, step);
  double at = start + step.time;
  if (step.bytes > 0 && step.group != kNone) {
    const std::size_t windows = cuts_.size() - 1;
    double left = step.bytes / step.weight;
    const bool goes_on = followed_ != kNone && steps[followed_].group == step.group &&
                         steps[followed_].kind == step.kind && steps[followed_].locks == step.locks &&
                         steps[followed_].finish == start && place_[followed_] + 1 == place_[s] &&
                         released(steps, s) <= followed_from_;
    if (!goes_on) followed_from_ = start;
    std::size_t w = goes_on ? window_ : 0;
    bool begun = goes_on && at < cuts_[w + 1];
    while (w + 1 < windows && cuts_[w + 1] <= at) ++w;
    for (;; ++w) {
      if (!begun) {
        filter_ = {step.group, step.locks, std::max(at, cuts_[w]), cuts_[w + 1]};
        begin_flow(step, filter_);
      }
      begun = false;
      const Progress progress = hand_out<false>(filter_, left, cuts_[w + 1] - at);
      if (progress.volume >= left) {
        at += progress.time;
        break;
      }
      left -= progress.volume;
      at = cuts_[w + 1];
      if (at >= before) break;
    }
    window_ = w;
    followed_ = s;
  }
  step.finish = std::min(before, slightly_later(at));
  if (step.finish < slightly_later(at)) followed_ = kNone;
  return step.finish < before * kClearlyBelow;
}

// ---- handing out volume

inline SafeBound::Link& SafeBound::link_of(CapacityId id, const Filter& filter) {
  const Capacity& capacity = capacities_[id.index()];
  double load = 0;
  const Share* const end = shares_.data() + capacity.shares_end;
  for (const Share* share = shares_.data() + capacity.shares_begin; share != end; ++share)
    load += filter.counts(*share) ? share->load : 0;
  return links_.emplace_back(Link{events_.data() + capacity.events_begin, events_.data() + capacity.events_end,
                                  capacity.inverse, load, 0, 0, 0, kNone, 0});
}

/// Begins a flow of one kind, of any volume.
inline void SafeBound::begin_flow(const BoundedStep& step, const Filter& filter) {
  links_.clear();
  for (const CapacityUse& use : step.uses) {
    if (!capacities_[use.capacity.index()].counts) continue;
    Link& link = link_of(use.capacity, filter);
    link.own = step.weight * use.cost;
    link.own_left = kNoFinish;
  }
  links_.push_back({nullptr, nullptr, 1 / step.alone, 0, step.weight, 0, kNoFinish, kNone, 0});
}

/// Begins a run of several steps of a group, one behind the other: on each capacity their loads are taken in turn, the
/// largest first.
/// @return their volume
double SafeBound::begin_run(std::span<const BoundedStep> steps, std::uint32_t from, std::uint32_t to,
                            const Filter& filter) {
  links_.clear();
  own_.clear();
  budgets_.fill(0);
  std::array<std::uint32_t, kKinds> kinds;
  std::uint32_t count = 0;
  for (std::uint32_t m = from; m <= to; ++m) {
    const BoundedStep& step = steps[members_[m]];
    if (step.bytes == 0) continue;
    std::uint32_t kind = 0;
    while (kind < count && kinds[kind] != step.kind) ++kind;
    if (kind == count && count < kKinds) {
      kinds[count++] = step.kind;
      links_.push_back({nullptr, nullptr, 1, 0, 0, 0, 0, kNone, 1U << kind});  // rate of the kind alone
    }
  }
  for (std::uint32_t m = from; m <= to; ++m) {
    const BoundedStep& step = steps[members_[m]];
    if (step.bytes == 0) continue;
    const double volume = step.bytes / step.weight;
    std::uint32_t kind = 0;
    while (kind + 1 < count && kinds[kind] != step.kind) ++kind;
    for (std::uint32_t set = 0; set < budgets_.size(); ++set)
      if ((set >> kind & 1U) != 0) budgets_[set] += volume;
    add_own(links_[kind], step.weight / step.alone, volume);
    for (const CapacityUse& use : step.uses) {
      if (!capacities_[use.capacity.index()].counts) continue;
      std::uint32_t& link = capacities_[use.capacity.index()].link;
      if (link == kNone) {
        link = static_cast<std::uint32_t>(links_.size());
        link_of(use.capacity, filter);
      }
      links_[link].kinds |= 1U << kind;
      add_own(links_[link], step.weight * use.cost, volume);
    }
  }
  for (std::uint32_t m = from; m <= to; ++m)
    for (const CapacityUse& use : steps[members_[m]].uses) capacities_[use.capacity.index()].link = kNone;
  for (Link& link : links_) {
    link.own = own_[link.piece].load;
    link.own_left = own_[link.piece].volume;
    link.piece = own_[link.piece].next;
  }
  return budgets_.back();
}

inline void SafeBound::add_own(Link& link, double load, double volume) {
  std::uint32_t* at = &link.piece;
  while (*at != kNone && own_[*at].load > load) at = &own_[*at].next;
  if (*at != kNone && own_[*at].load == load) {
    own_[*at].volume += volume;
    return;
  }
  const auto piece = static_cast<std::uint32_t>(own_.size());
  const std::uint32_t next = std::exchange(*at, piece);
  own_.push_back({load, volume, next});
}

/// Hands out volume where it takes the most time, until `volume` is handed out or `time` has passed.
/// @tparam mixed  whether flows of several kinds share the volume.
template <bool mixed>
SafeBound::Progress SafeBound::hand_out(const Filter& filter, double volume, double time) {
  double left = volume, passed = 0;
  for (;;) {
    Link* slow = nullptr;
    double slope = 0;
    for (Link& link : links_) {
      const double own = (link.rivals + link.own) * link.inverse;
      if (own <= slope) continue;
      slope = own;
      slow = &link;
    }
    if (slow == nullptr) return {volume, passed};
    while (slow->next != slow->end && !filter.counts(shares_[slow->next->share])) ++slow->next;
    const double rival = slow->next == slow->end ? kNoFinish : std::max(0.0, slow->next->limit - slow->handed_out);
    double most = std::min(left, std::max(0.0, time - passed) / slope);
    if constexpr (mixed) {
      most = slow->own_left;
      for (std::uint32_t set = slow->kinds; set < budgets_.size(); ++set)
        if ((set & slow->kinds) == slow->kinds) most = std::min(most, budgets_[set]);
    }
    const double part = std::min(rival, most);
    left -= part;
    passed += part * slope;
    slow->handed_out += part;
    if constexpr (mixed) {
      slow->own_left -= part;
      bool closed = false;
      for (std::uint32_t set = slow->kinds; set < budgets_.size(); ++set) {
        if ((set & slow->kinds) != slow->kinds) continue;
        budgets_[set] -= part;
        closed |= budgets_[set] <= 0;
      }
      if (closed) {
        slow->inverse = 0;
      } else if (slow->own_left <= 0) {
        if (slow->piece == kNone) {
          slow->inverse = 0;
          continue;
        }
        slow->own = own_[slow->piece].load;
        slow->own_left = own_[slow->piece].volume;
        slow->piece = own_[slow->piece].next;
      }
    } else if (part != rival) {
      if (left <= 0) return {volume, passed};
      return {volume - left, time};
    }
    if (part == rival) {
      slow->rivals = without(slow->rivals, slow->next->drop);
      ++slow->next;
    }
  }
}

// ---- batches

std::span<const double> BatchBound::find(const BatchSimulation& loaded, std::span<const double> gates,
                                         double gate_jitter, std::span<const std::uint32_t> order) {
  steps_.clear();
  streams_.clear();
  if (!loaded.contended()) {
    add_queues(loaded, gates, gate_jitter);
  } else if (order.empty()) {
    service_order(loaded.batch(), order_);
    add_commands(loaded, gates, gate_jitter, order_);
  } else {
    add_commands(loaded, gates, gate_jitter, order);
  }
  bound_.find(loaded.bandwidth().capacities(), steps_);
  finishes_.assign(loaded.times().size(), 0);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    double& finish = finishes_[streams_[s]];
    finish = std::max(finish, loaded.batch_setup_ns() + steps_[s].finish);
  }
  return finishes_;
}

inline BoundedStep& BatchBound::add_step(const BatchSimulation& loaded, const Step& step) {
  BoundedStep& bounded = steps_.emplace_back();
  streams_.push_back(step.stream);
  if (step.flow == kNone) {
    bounded.time = step.amount;
    return bounded;
  }
  const BandwidthModel& bandwidth = loaded.bandwidth();
  bounded.bytes = step.amount;
  bounded.weight = bandwidth.weight(step.flow);
  bounded.alone = bandwidth.most(step.flow);
  bounded.uses = bandwidth.uses(step.flow);
  return bounded;
}

/// Adds queues that never wait for each other, in the order of their gates.
void BatchBound::add_queues(const BatchSimulation& loaded, std::span<const double> gates, double gate_jitter) {
  const auto queues = loaded.batch().queues();
  order_.resize(queues.size());
  std::iota(order_.begin(), order_.end(), 0U);
  std::sort(order_.begin(), order_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return std::pair(gates[a], a) < std::pair(gates[b], b); });
  for (const std::uint32_t c : order_) {
    std::uint32_t before = kNone;
    double time = 0;  // before a flow; it may also be shorter, even 0
    for (std::uint32_t i = queues[c].begin; i < queues[c].end; ++i) {
      const Step& step = loaded.batch().step(i);
      if (step.flow == kNone && !step.last) {
        time += step.amount;
        continue;
      }
      BoundedStep& bounded = add_step(loaded, step);
      bounded.time += std::exchange(time, 0);
      bounded.group = c;
      bounded.earliest = gates[c];
      bounded.release = before == kNone ? gates[c] + gate_jitter : 0;
      bounded.after[0] = std::exchange(before, static_cast<std::uint32_t>(steps_.size() - 1));
    }
  }
}

/// Adds queues that may wait for each other: their commands in the order in which they are served.
void BatchBound::add_commands(const BatchSimulation& loaded, std::span<const double> gates, double gate_jitter,
                              std::span<const std::uint32_t> order) {
  const EngineQueues& batch = loaded.batch();
  const auto queues = batch.queues();
  const auto queue_count = static_cast<std::uint32_t>(queues.size());
  queue_of_.resize(batch.step_count());
  for (std::uint32_t c = 0; c < queue_count; ++c)
    std::fill(queue_of_.begin() + queues[c].begin, queue_of_.begin() + queues[c].end, c);
  last_of_queue_.assign(queue_count, kNone);
  last_of_lock_.assign(batch.lock_count(), kNone);
  for (const std::uint32_t first : order) {
    const std::uint32_t c = queue_of_[first];
    const auto locks = batch.locks(batch.step(first));
    double time = 0, unpaid = batch.step(first).unpaid;
    for (std::uint32_t i = first;; ++i) {
      const Step& step = batch.step(i);
      if (step.flow == kNone && !step.last) {
        time += step.amount;
        continue;
      }
      BoundedStep& bounded = add_step(loaded, step);
      const auto position = static_cast<std::uint32_t>(steps_.size() - 1);
      bounded.time += std::exchange(time, 0);
      bounded.unpaid = std::exchange(unpaid, 0);
      bounded.locks = locks;
      bounded.earliest = gates[c];
      bounded.release = last_of_queue_[c] == kNone ? gates[c] + gate_jitter : 0;
      // Unmerged, the transfers of an engine are a group, which takes turns on it.
      bounded.group = batch.merges() ? c : step.kernel ? kNone : queue_count + locks[0];
      bounded.after[0] = std::exchange(last_of_queue_[c], position);
      for (std::size_t l = 0; l < locks.size(); ++l)
        if (locks[l] != kNone) bounded.after[1 + l] = std::exchange(last_of_lock_[locks[l]], position);
      if (step.last) break;
    }
  }
}

LatestFinish latest_finish(const ExecutionPlan& plan, Basis basis, Duration gate_jitter) {
  BatchSimulation loaded;
  loaded.load(plan.machine(), basis, plan.batch, plan.rates);
  std::vector<std::uint32_t> order;
  if (loaded.contended()) service_order(loaded.batch(), plan.timeline, order);
  BatchBound bound;
  LatestFinish latest{{}, plan.timeline.latency, plan.machine().setup().job.at(basis)};
  for (const double ns : bound.find(loaded, gates_of(loaded, plan.timeline), as_ns(gate_jitter), order)) {
    const StreamTimeline& planned = plan.timeline.streams[latest.streams.size()];
    latest.streams.push_back(std::max(planned.end(), round_up_ns(ns)));
    latest.batch = std::max(latest.batch, latest.streams.back());
  }
  return latest;
}

}  // namespace tutti::internal
