#include "model/batch_simulation.hpp"

#include <algorithm>
#include <limits>

#include "model/expects.hpp"
#include "model/room.hpp"

namespace tutti {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double as_ns(Duration time) { return static_cast<double>(time.count()); }

/// Members of a group are looked at so many at a time.
constexpr std::uint32_t kBlock = 4;

/// Events this close together are one: the rounding noise of what is the same instant on paper.
double same_instant(double ns) { return ns * (1 + 1e-12); }

}  // namespace

void BatchSimulation::load(const Topology& machine, Basis basis, const BatchOperation& batch, RateRule rule) {
  batch_setup_ = as_ns(machine.setup().batch);
  batch_.load(machine, basis, batch, rule, bandwidth_);
  stream_count_ = batch.streams().size();
  piece_count_ = 0;
  make_room_for(stream_count_);
  make_room(busy_, batch_.lock_count());
  make_room(stretches_, batch_.steps().size());
  make_room(groups_, bandwidth_.group_count());
  make_room(members_, kBlock * bandwidth_.flow_count());
}

void BatchSimulation::make_room_for(std::size_t streams) {
  if (streams <= times_.size()) return;
  times_.resize(streams);
  for (auto* of_chains : {&gates_, &room_gates_}) of_chains->resize(streams);
  chains_.resize(streams);
  timed_.resize(streams);
  room_order_.resize(streams);
}

// ---- what planners ask

/// One step, nothing else under way.
double BatchSimulation::alone_ns(const Step& step) const {
  return step.flow == kNone ? step.amount : step.amount / bandwidth_.alone(step.flow);
}

double BatchSimulation::transfers_alone_ns(std::size_t chain) const {
  double total = 0;
  for (std::uint32_t i = batch_.chains()[chain].begin; i < batch_.chains()[chain].end; ++i)
    if (!batch_.step(i).kernel) total += alone_ns(batch_.step(i));
  return total;
}

double BatchSimulation::kernels_ns(std::size_t chain) const {
  double total = 0;
  for (std::uint32_t i = batch_.chains()[chain].begin; i < batch_.chains()[chain].end; ++i)
    if (batch_.step(i).kernel) total += alone_ns(batch_.step(i));
  return total;
}

BatchSimulation::Room BatchSimulation::room() {
  return {{room_order_.data(), chain_count()}, {room_gates_.data(), chain_count()}};
}

// ---- runs

void BatchSimulation::run_forward(std::span<const double> starts) {
  TUTTI_EXPECTS(starts.empty() || starts.size() == chain_count(), "one start a chain, or none at all");
  if (starts.empty()) {
    std::fill_n(gates_.begin(), chain_count(), 0.0);
  } else {
    std::copy(starts.begin(), starts.end(), gates_.begin());
  }
  run(true);
}

void BatchSimulation::rerun_forward() {
  for (std::size_t c = 0; c < chain_count(); ++c) gates_[c] = as_ns(round_down_ns(gates_[c]));
  run(true);
}

void BatchSimulation::run_backward() {
  std::fill_n(gates_.begin(), chain_count(), 0.0);
  run(false);
}

void BatchSimulation::run(bool forward) {
  forward_ = forward;
  forth_ = forward ? 1 : ~std::uint32_t{0};
  waited_ = false;
  open_gates();
  for (;;) {
    if (batch_.contended()) serve_waiting();
    if (rates_stale_) update_lambdas();
    if (running_ == 0) break;
    next_instant();
  }
  latency_ = now_ + batch_setup_;
  write_timeline();
}

/// Puts chains before their gates, and lets those go whose gates are open from the start.
inline void BatchSimulation::open_gates() {
  std::uint32_t begin = 0;
  for (std::uint32_t g = 0; g < bandwidth_.group_count(); ++g) {
    groups_[g] = {kNever, 0, 0, 0, kNever, 0, begin, begin, kNone, 0};
    const std::uint32_t end = begin + (bandwidth_.group_size(g) + kBlock - 1) / kBlock * kBlock;
    for (; begin < end; ++begin) members_[begin].target = kNever;
  }
  const auto chains = batch_.chains();
  now_ = 0;
  level_count_ = 0;
  timed_count_ = 0;
  rates_stale_ = false;
  running_ = static_cast<std::uint32_t>(chains.size());
  for (std::uint32_t c = 0; c < chains.size(); ++c) {
    const auto [first, end] = chains[c];
    chains_[c] = {forward_ ? first : end - 1, forward_ ? end : first - 1, State::Gate, 0};
    if (gates_[c] > 0) {
      timed_[timed_count_++] = {gates_[c], c};
    } else {
      go_on(c);
    }
  }
}

/// Goes to the next event and ends all steps that are over then. The search finds the smallest event and how far off
/// the one after it is, in one pass and without a branch that a processor would mispredict; mostly only the one is due.
inline void BatchSimulation::next_instant() {
  const auto groups = static_cast<std::uint32_t>(bandwidth_.group_count());
  double until = -1;
  for (bool more = true; more;) {
    double first = kNever;
    double second = kNever;
    std::uint32_t position = 0;
    const auto look_at = [&](double event, std::uint32_t at) {
      position = event < first ? at : position;
      second = std::min(second, std::max(first, event));
      first = std::min(first, event);
    };
    for (std::uint32_t t = 0; t < timed_count_; ++t) look_at(timed_[t].event, groups + t);
    for (std::uint32_t g = 0; g < groups; ++g) look_at(groups_[g].event, g);  // last, as they were found out last
    if (until < 0) {
      TUTTI_EXPECTS(first < kNever, "a chain that is not done has an event ahead");
      now_ = first;
      until = same_instant(now_);
    }
    if (first > until) return;
    more = second <= until;
    if (position < groups) {
      end_flow(position);
      more |= groups_[position].event <= until;
    } else {
      end_time(position - groups);
    }
  }
}

/// A time has passed, or a gate opens.
inline void BatchSimulation::end_time(std::uint32_t position) {
  const std::uint32_t c = timed_[position].chain;
  --timed_count_;
  timed_[position].event = timed_[timed_count_].event;  // field by field, which is how they were written: a processor
  timed_[position].chain = timed_[timed_count_].chain;  // waits where one load takes up what two stores have left
  if (chains_[c].state != State::Gate) leave(c);
  go_on(c);
}

/// The next flow of a group is over.
inline void BatchSimulation::end_flow(std::uint32_t g) {
  bandwidth_.stop(g);
  rates_stale_ = true;
  Group& group = groups_[g];
  const double target = group.next;
  const std::uint32_t c = members_[group.next_member].chain;
  --group.end;
  members_[group.next_member].target = members_[group.end].target;
  members_[group.next_member].chain = members_[group.end].chain;
  members_[group.end].target = kNever;
  group.progress = target;
  group.since = now_;
  find_next(group);
  group.event = now_ + (group.next - target) / group.lambda;
  stretches_[chains_[c].at].level = group.level;
  leave(c);
  go_on(c);
}

/// Looks for the member whose flow ends next, four at a time: places without a member never end, and most groups are
/// one round, which a processor predicts.
inline void BatchSimulation::find_next(Group& group) const {
  double next = kNever;
  std::uint32_t next_member = group.begin;
  for (std::uint32_t m = group.begin; m < group.end; m += kBlock) {
    for (std::uint32_t i = m; i < m + kBlock; ++i) {
      next_member = members_[i].target < next ? i : next_member;
      next = std::min(next, members_[i].target);
    }
  }
  group.next = next;
  group.next_member = next_member;
}

// ---- one chain

/// Ends the current step.
inline void BatchSimulation::leave(std::uint32_t c) {
  Chain& chain = chains_[c];
  stretches_[chain.at].end = now_;
  if (batch_.contended() && closes(batch_.step(chain.at))) set_locks(batch_.step(chain.at), 0);
  chain.at += forth_;
}

/// Enters the steps that come next, up to one that takes time. Without contention a command starts at once, otherwise
/// `serve_waiting` decides.
inline void BatchSimulation::go_on(std::uint32_t c) {
  Chain& chain = chains_[c];
  while (chain.at != chain.stop) {
    if (batch_.contended() && opens(batch_.step(chain.at))) {
      chain.state = State::Waiting;
      chain.since = now_;
      return;
    }
    if (enter(c)) return;
    leave(c);
  }
  --running_;
}

/// False where the step takes no time.
inline bool BatchSimulation::enter(std::uint32_t c) {
  Chain& chain = chains_[c];
  const Step& step = batch_.step(chain.at);
  if (batch_.contended() && opens(step)) set_locks(step, 1);
  chain.state = State::Running;
  stretches_[chain.at].begin = now_;
  if (step.flow != kNone) {
    start_flow(step, c);
    return true;
  }
  if (step.amount == 0) return false;
  timed_[timed_count_++] = {now_ + step.amount, c};
  return true;
}

inline void BatchSimulation::start_flow(const Step& step, std::uint32_t c) {
  const std::uint32_t g = bandwidth_.group(step.flow);
  Group& group = groups_[g];
  group.progress = group.begin == group.end ? 0 : group.progress + group.lambda * (now_ - group.since);
  group.since = now_;
  const double target = group.progress + step.amount / bandwidth_.weight(step.flow);
  group.next_member = target < group.next ? group.end : group.next_member;
  group.next = std::min(group.next, target);
  members_[group.end++] = {target, c};
  bandwidth_.start(g);
  rates_stale_ = true;
}

/// Gives the groups their new lambdas, and finds when their next flows end.
inline void BatchSimulation::update_lambdas() {
  rates_stale_ = false;
  make_room(levels_, level_count_ + bandwidth_.group_count());
  for (const std::uint32_t g : bandwidth_.solve()) {
    Group& group = groups_[g];
    const double lambda = bandwidth_.lambda(g);
    if (lambda != group.lambda) {
      group.progress += group.lambda * (now_ - group.since);
      group.since = now_;
      group.lambda = lambda;
      levels_[level_count_] = {now_, lambda, group.level, ++group.levels};
      group.level = level_count_++;
    }
    group.event = group.since + (group.next - group.progress) / lambda;
  }
}

// ---- chains that wait for a GPU or an engine

inline void BatchSimulation::set_locks(const Step& step, char busy) {
  for (const std::uint32_t lock : step.locks)
    if (lock != kNone) busy_[lock] = busy;
}

bool BatchSimulation::locks_free(const Step& step) const {
  return std::none_of(step.locks.begin(), step.locks.end(),
                      [&](std::uint32_t lock) { return lock != kNone && busy_[lock] != 0; });
}

/// What a chain still has to do after its current command, nothing else under way.
double BatchSimulation::work_after(const Chain& chain) const {
  std::uint32_t at = chain.at;
  while (!closes(batch_.step(at))) at += forth_;
  double total = 0;
  for (at += forth_; at != chain.stop; at += forth_) total += alone_ns(batch_.step(at));
  return total;
}

/// Forward: first come, first served. Backward: the longest way still to go, so that it is done last in time and its
/// transfer gets the most room (Jackson's rule, mirrored).
bool BatchSimulation::goes_before(std::uint32_t a, std::uint32_t b) const {
  if (forward_) return chains_[a].since != chains_[b].since ? chains_[a].since < chains_[b].since : a < b;
  const double work_a = work_after(chains_[a]);
  const double work_b = work_after(chains_[b]);
  return work_a != work_b ? work_a > work_b : a > b;
}

void BatchSimulation::serve_waiting() {
  for (;;) {
    std::uint32_t best = kNone;
    for (std::uint32_t c = 0; c < chain_count(); ++c) {
      if (chains_[c].state != State::Waiting || !locks_free(batch_.step(chains_[c].at))) continue;
      if (best == kNone || goes_before(c, best)) best = c;
    }
    if (best == kNone) return;
    waited_ |= chains_[best].since < now_;
    if (enter(best)) continue;
    leave(best);
    go_on(best);
  }
}

// ---- from the run to the batch's times

/// Writes down when everything happens; of a backward run mirrored, with the set-up of the batch before everything.
inline void BatchSimulation::write_timeline() {
  std::fill_n(times_.begin(), stream_count_, StreamTimes{});
  piece_count_ = 0;
  const double sign = forward_ ? 1 : -1;
  const double origin = forward_ ? batch_setup_ : latency_;
  for (std::uint32_t c = 0; c < chain_count(); ++c) {
    const auto [begin, end] = batch_.chains()[c];
    for (std::uint32_t i = begin; i < end; ++i) {
      const Step& step = batch_.step(i);
      const Stretch& stretch = stretches_[i];
      const double from = origin + sign * (forward_ ? stretch.begin : stretch.end);
      const double to = origin + sign * (forward_ ? stretch.end : stretch.begin);
      StreamTimes& times = times_[step.stream];
      if (step.first) (step.kernel ? times.kernel_start : times.transfer_start) = from;
      if (step.last) (step.kernel ? times.kernel_end : times.transfer_end) = to;
      if (i == begin && !forward_) gates_[c] = std::max(0.0, from - batch_setup_);
      times.gate = gates_[c] + batch_setup_;
      if (step.flow != kNone) {
        write_pieces(step, stretch, origin, sign);
      } else if (!step.kernel && to > from) {
        make_room(pieces_, piece_count_ + 1);
        pieces_[piece_count_++] = {step.stream, from, to, 0};
      }
    }
  }
}

/// A flow's pieces: from its group's last lambda back to the first, which of a backward run is the order of time.
inline void BatchSimulation::write_pieces(const Step& step, const Stretch& stretch, double origin, double sign) {
  const Level* const levels = levels_.data();
  std::uint32_t level = stretch.level;
  make_room(pieces_, piece_count_ + levels[level].number + 1);
  RatePiece* const first = pieces_.data() + piece_count_;
  RatePiece* piece = first;
  const double weight = step.data ? bandwidth_.weight(step.flow) : 0;
  for (double end = stretch.end; end > stretch.begin; level = levels[level].older) {
    const double begin = std::max(levels[level].since, stretch.begin);
    const double rate = levels[level].lambda * weight;
    *piece = {step.stream, origin + sign * end, origin + sign * begin, rate};
    piece += end > begin ? 1 : 0;
    end = begin;
  }
  piece_count_ += static_cast<std::size_t>(piece - first);
  if (!forward_) return;
  std::reverse(first, piece);
  for (RatePiece* p = first; p != piece; ++p) std::swap(p->start, p->end);
}

}  // namespace tutti
