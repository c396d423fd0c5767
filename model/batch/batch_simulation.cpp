#include "model/batch/batch_simulation.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "model/base/expects.hpp"
#include "model/base/grow_to.hpp"

namespace tutti::internal {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Events this close together count as simultaneous where their order matters: the distance is rounding noise.
double same_instant(double ns) { return ns * (1 + 1e-12); }

}  // namespace

void BatchSimulation::load(const Topology& machine, Basis basis, const Batch& batch, RateRule rule) {
  TUTTI_EXPECTS(batch.machine() == machine, "a batch is asked about on the machine that it was made for");
  batch_setup_ = as_ns(machine.setup().batch.at(basis));
  basis_ = basis;
  runs_ = 0;
  spread_ = basis == Basis::Nominal ? machine.spread() : 0;
  batch_.load(machine, basis, batch, rule, bandwidth_);
  stream_count_ = batch.streams().size();
  clock_ = bandwidth_.group_count();
  gate_ = clock_ + 1;
  grow_for(stream_count_);
  grow_to(busy_, batch_.lock_count());
  grow_to(paces_, gate_ + 1);
  grow_to(active_, clock_ + 1);
  grow_to(place_, clock_ + 1);
}

void BatchSimulation::grow_for(std::size_t streams) {
  if (streams <= times_.size()) return;
  times_.resize(streams);
  for (auto* of_queues : {&gates_, &workspace_gates_, &workspace_previous_, &workspace_best_})
    of_queues->resize(streams);
  workspace_instants_.resize(4 * streams);
  pending_.resize(streams);
  waiting_.resize(streams);
  workspace_order_.resize(streams);
}

// ---- what planners ask

/// Length of one step with nothing else active.
double BatchSimulation::alone_ns(const Step& step) const {
  return step.flow == kNone ? step.amount : step.amount / bandwidth_.alone(step.flow);
}

double BatchSimulation::alone_ns(std::size_t queue, bool kernels) const {
  double total = 0;
  for (std::uint32_t i = batch_.queues()[queue].begin; i < batch_.queues()[queue].end; ++i)
    if (batch_.step(i).kernel == kernels) total += alone_ns(batch_.step(i));
  return total;
}

BatchSimulation::Workspace BatchSimulation::room() {
  return {{workspace_order_.data(), queue_count()},
          {workspace_gates_.data(), queue_count()},
          {workspace_previous_.data(), queue_count()},
          {workspace_best_.data(), queue_count()},
          {workspace_instants_.data(), 4 * stream_count_}};
}

// ---- runs

void BatchSimulation::run_forward(std::span<const double> starts) {
  set_gates(starts);
  in_order_ = false;
  run(true);
}

void BatchSimulation::run_in_order(std::span<const double> starts, std::span<const std::uint32_t> order) {
  set_gates(starts);
  if (batch_.contended()) take_turns(order);
  in_order_ = batch_.contended();
  run(true);
}

void BatchSimulation::set_gates(std::span<const double> starts) {
  TUTTI_EXPECTS(starts.empty() || starts.size() == queue_count(), "one start an engine queue, or none at all");
  if (starts.empty()) {
    std::fill_n(gates_.begin(), queue_count(), 0.0);
  } else {
    std::copy(starts.begin(), starts.end(), gates_.begin());
  }
}

void BatchSimulation::take_turns(std::span<const std::uint32_t> order) {
  grow_to(turns_, batch_.step_count());
  last_.assign(batch_.lock_count(), kNone);
  for (const std::uint32_t command : order) {
    turns_[command] = {{kNone, kNone}, false};
    const auto locks = batch_.locks(batch_.step(command));
    for (std::size_t l = 0; l < locks.size(); ++l)
      if (locks[l] != kNone) turns_[command].after[l] = std::exchange(last_[locks[l]], command);
  }
}

void BatchSimulation::rerun_forward() {
  for (std::size_t c = 0; c < queue_count(); ++c) gates_[c] = as_ns(round_down_ns(gates_[c]));
  in_order_ = false;
  run(true);
}

void BatchSimulation::run_backward() {
  std::fill_n(gates_.begin(), queue_count(), 0.0);
  in_order_ = false;
  run(false);
}

void BatchSimulation::run(bool forward) {
  forward_ = forward;
  forth_ = forward ? 1 : ~std::uint32_t{0};
  waited_ = false;
  ++runs_;
  start_over();
  open_gates();
  for (;;) {
    if (batch_.contended()) serve_waiting();
    if (pending_count_ == 0) break;
    update_rates();
    next_instant();
  }
  TUTTI_EXPECTS(waiting_count_ == 0, "who holds what others wait for comes to an end");
  latency_ = now_ + batch_setup_;
  write_times();
}

inline void BatchSimulation::start_over() {
  bandwidth_.restart();
  std::fill_n(paces_.begin(), clock_, kNoPace);
  paces_[clock_] = paces_[gate_] = {0, 1, 1};
  if (in_order_)
    for (std::size_t i = 0; i < batch_.step_count(); ++i) turns_[i].over = false;
  now_ = since_ = 0;
  pending_count_ = waiting_count_ = active_count_ = 0;
}

/// Lets queues wait for their gates, and starts the queues whose gates are open from the beginning.
inline void BatchSimulation::open_gates() {
  const auto queues = batch_.queues();
  for (std::uint32_t c = 0; c < queues.size(); ++c) {
    const std::uint32_t step = forward_ ? queues[c].begin : queues[c].end - 1;
    if (gates_[c] > 0) {
      pending_[pending_count_++] = {gates_[c], gate_, step};
    } else {
      start(step);
    }
  }
}

/// Time until a step ends or a gate opens, ns from `since_` on.
inline double BatchSimulation::left(const Pending& pending) const {
  const Pace& pace = paces_[pending.group];
  return (pending.target - pace.progress) * pace.inverse;
}

/// Goes to the next event. Remaining times are compared as integers with the same bits: non-negative doubles have the
/// same order, found in a quarter of the time.
inline void BatchSimulation::next_instant() {
  auto least = std::bit_cast<std::int64_t>(kNever);
  std::uint32_t position = 0;
  for (std::uint32_t i = 0; i < pending_count_; ++i) {
    const auto event = std::bit_cast<std::int64_t>(left(pending_[i]));
    position = event < least ? i : position;
    least = std::min(least, event);
  }
  now_ = std::max(now_, since_ + std::bit_cast<double>(least));
  end(position);
  if (batch_.contended()) end_others();
}

/// Ends all steps that are over at this instant, before waiting queues are served; a step that starts now may end now.
void BatchSimulation::end_others() {
  const double until = same_instant(now_) - since_;
  for (bool more = true; more;) {
    more = false;
    for (std::uint32_t i = pending_count_; i-- > 0;) {
      if (left(pending_[i]) > until) continue;
      end(i);
      more = true;
    }
  }
}

/// A step is over, or a gate opens.
inline void BatchSimulation::end(std::uint32_t position) {
  const auto [target, group, step] = pending_[position];
  pending_[position] = pending_[--pending_count_];
  if (group < clock_) {
    bandwidth_.stop(group);
    if (bandwidth_.active(group) == 0) {
      const std::uint32_t last = active_[--active_count_];
      place_[last] = place_[group];
      active_[place_[group]] = last;
      paces_[group] = kNoPace;
    }
  }
  if (group == gate_) {
    start(step);
  } else if (leave(step)) {
    start(step + forth_);
  }
}

// ---- one engine queue

/// Enters a step and, where it takes no time, the next ones. Without contention a command starts at once, otherwise
/// `serve_waiting` decides.
inline void BatchSimulation::start(std::uint32_t position) {
  for (;; position += forth_) {
    if (batch_.contended() && opens(batch_.step(position))) {
      waiting_[waiting_count_++] = {position, now_};
      return;
    }
    if (enter(position) || !leave(position)) return;
  }
}

/// False where the step takes no time.
inline bool BatchSimulation::enter(std::uint32_t position) {
  Step& step = batch_.step(position);
  if (batch_.contended() && opens(step)) set_locks(step, 1);
  step.begin = now_;
  if (step.amount == 0) return false;
  std::uint32_t group = clock_;
  if (step.flow != kNone) {
    group = bandwidth_.group(step.flow);
    bandwidth_.start(group);
    place_[group] = bandwidth_.active(group) == 1 ? active_count_ : place_[group];
    active_[active_count_] = group;  // kept where it is new
    active_count_ += bandwidth_.active(group) == 1 ? 1 : 0;
  }
  const Pace& pace = paces_[group];
  pending_[pending_count_++] = {pace.progress + pace.rate * (now_ - since_) + step.amount, group, position};
  return true;
}

/// False where the step is the queue's last.
inline bool BatchSimulation::leave(std::uint32_t position) {
  Step& step = batch_.step(position);
  step.end = now_;
  if (batch_.contended() && closes(step)) {
    set_locks(step, 0);
    if (in_order_) turns_[first_of_command(position)].over = true;
  }
  return !closes_queue(step);
}

/// Gives the groups with active flows their new rates.
inline void BatchSimulation::update_rates() {
  bandwidth_.solve();
  Pace* const paces = paces_.data();
  const double passed = now_ - since_;
  for (std::uint32_t i = 0; i < active_count_; ++i) {
    Pace& pace = paces[active_[i]];
    const auto [rate, inverse] = bandwidth_.rate(active_[i]);
    pace = {pace.progress + pace.rate * passed, rate, inverse};
  }
  paces[clock_].progress = paces[gate_].progress = since_ = now_;
  if (changes_ != nullptr) [[unlikely]]
    write_changes();
}

// ---- queues that wait for a GPU or an engine

inline void BatchSimulation::set_locks(const Step& step, char busy) {
  for (const std::uint32_t lock : batch_.locks(step))
    if (lock != kNone) busy_[lock] = busy;
}

std::uint32_t BatchSimulation::first_of_command(std::uint32_t step) const {
  while (!batch_.step(step).first) --step;
  return step;
}

bool BatchSimulation::may_enter(std::uint32_t step) const {
  if (!in_order_) return locks_free(batch_.step(step));
  const auto& after = turns_[step].after;
  return std::all_of(after.begin(), after.end(),
                     [&](std::uint32_t command) { return command == kNone || turns_[command].over; });
}

bool BatchSimulation::locks_free(const Step& step) const {
  const auto locks = batch_.locks(step);
  return std::none_of(locks.begin(), locks.end(),
                      [&](std::uint32_t lock) { return lock != kNone && busy_[lock] != 0; });
}

/// Length of an engine queue's remaining steps after the command of a step, with nothing else active.
double BatchSimulation::work_after(std::uint32_t step) const {
  while (!closes(batch_.step(step))) step += forth_;
  double total = 0;
  while (!closes_queue(batch_.step(step))) total += alone_ns(batch_.step(step += forth_));
  return total;
}

/// Forward: first come, first served. Backward: the most remaining work first, so that it is last in time and its
/// transfer gets the most room (Jackson's rule, mirrored). Ties by the order of the file.
bool BatchSimulation::goes_before(const Waiting& a, const Waiting& b) const {
  if (forward_) return a.since != b.since ? a.since < b.since : a.step < b.step;
  const double work_a = work_after(a.step);
  const double work_b = work_after(b.step);
  return work_a != work_b ? work_a > work_b : a.step > b.step;
}

void BatchSimulation::serve_waiting() {
  for (;;) {
    std::uint32_t best = kNone;
    for (std::uint32_t w = 0; w < waiting_count_; ++w) {
      if (!may_enter(waiting_[w].step)) continue;
      if (best == kNone || goes_before(waiting_[w], waiting_[best])) best = w;
    }
    if (best == kNone) return;
    const auto [step, since] = waiting_[best];
    waiting_[best] = waiting_[--waiting_count_];
    waited_ |= since < now_;
    if (!enter(step) && leave(step)) start(step + forth_);
  }
}

// ---- from the run to the batch's times

/// An interval in the batch's time: set-up first, a backward run mirrored.
inline BatchSimulation::Interval BatchSimulation::in_batch_time(double begin, double end) const {
  if (forward_) return {batch_setup_ + begin, batch_setup_ + end};
  return {latency_ - end, latency_ - begin};
}

/// Writes down the times of every stream.
inline void BatchSimulation::write_times() {
  std::fill_n(times_.begin(), stream_count_, StreamTimes{});
  for (std::uint32_t c = 0; c < queue_count(); ++c) {
    const auto [first, end] = batch_.queues()[c];
    if (!forward_) gates_[c] = std::max(0.0, now_ - batch_.step(first).end);
    for (std::uint32_t i = first; i < end; ++i) {
      const Step& step = batch_.step(i);
      const auto [from, to] = in_batch_time(step.begin, step.end);
      StreamTimes& times = times_[step.stream];
      if (step.first) (step.kernel ? times.kernel_start : times.transfer_start) = from;
      if (step.last) (step.kernel ? times.kernel_end : times.transfer_end) = to;
      times.gate = gates_[c] + batch_setup_;
    }
  }
}

/// Writes down which groups have new rates.
void BatchSimulation::write_changes() const {
  for (std::uint32_t i = 0; i < active_count_; ++i) {
    const std::uint32_t g = active_[i];
    const RateChange change{now_, paces_[g].rate, bandwidth_.source(g)};
    auto& of_group = (*changes_)[g];
    if (of_group.empty() || of_group.back().rate != change.rate || of_group.back().source != change.source)
      of_group.push_back(change);
  }
}

/// Rate changes of the last run. The run is repeated for them, equal to the last bit: predictions need only times, and
/// recording the changes would cost more than calculating them.
BatchSimulation::RateChanges BatchSimulation::rate_changes() const {
  RateChanges changes(clock_);
  BatchSimulation again(*this);
  again.changes_ = &changes;
  if (!forward_) std::fill_n(again.gates_.begin(), queue_count(), 0.0);
  again.run(forward_);
  return changes;
}

std::vector<RateSegment> BatchSimulation::pieces() const {
  std::vector<RateSegment> pieces;
  const RateChanges changes = rate_changes();
  for (std::size_t i = 0; i < batch_.step_count(); ++i) {
    const Step& step = batch_.step(i);
    if (step.kernel || step.amount == 0) continue;
    const auto add = [&](double begin, double end, double rate, RateSource source) {
      const auto [from, to] = in_batch_time(begin, end);
      if (to > from) pieces.push_back({step.stream, from, to, rate, source});
    };
    if (!step.data) {
      add(step.begin, step.end, 0, RateSource::Graph);
      continue;
    }
    const auto first = static_cast<std::ptrdiff_t>(pieces.size());
    const std::vector<RateChange>& of_group = changes[bandwidth_.group(step.flow)];
    auto change = std::upper_bound(of_group.begin(), of_group.end(), step.begin,
                                   [](double at, const RateChange& other) { return at < other.instant; }) -
                  1;
    for (double at = step.begin; at < step.end;) {
      const auto [instant, rate, source] = *change;
      const double end = ++change == of_group.end() ? step.end : std::min(change->instant, step.end);
      add(at, end, rate, source);
      at = end;
    }
    if (!forward_) std::reverse(pieces.begin() + first, pieces.end());
  }
  return pieces;
}

}  // namespace tutti::internal
