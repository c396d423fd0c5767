#include "model/batch_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/expects.hpp"

namespace tutti {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double as_ns(Duration time) { return static_cast<double>(time.count()); }

/// Events this close together are one: the rounding noise of what is the same instant on paper.
double same_instant(double ns) { return ns * (1 + 1e-12); }

}  // namespace

// ---- loading: streams -> chains -> commands -> flows

void BatchSimulation::load(const Topology& machine, Basis basis, const BatchOperation& batch, RateRule rule) {
  rule_ = rule;
  batch_setup_ = as_ns(machine.setup().batch);
  transfer_setup_ = as_ns(machine.setup().transfer);
  contended_ = false;
  engine_count_ = machine.engine_count();
  const std::size_t locks = engine_count_ + machine.vertices().size();
  if (owner_.size() < locks) {
    owner_.resize(locks, 0);
    busy_.resize(locks, 0);
  }
  merge_streams(machine, batch);
  bandwidth_.reset(machine, basis);
  make_commands(machine, basis, batch);
  bandwidth_.finish();
  rates_.resize(bandwidth_.flow_count());
  if (rule_ == RateRule::Allocated) bandwidth_.allocate(rates_);
}

/// Gives a stream the chain that owns one of its engines, and joins the two chains where it finds two.
std::uint32_t BatchSimulation::merge_into_owner(std::uint32_t stream, std::span<const EngineId> engines) {
  std::uint32_t chain = kNone;
  for (const EngineId engine : engines) {
    const std::uint64_t slot = owner_[engine.index()];
    if (slot >> 32 != epoch_) continue;
    const auto other = static_cast<std::uint32_t>(slot);
    if (chain != kNone && other != chain) {
      for (std::uint32_t s = 0; s < stream; ++s)
        if (chain_of_[s] == std::max(chain, other)) chain_of_[s] = std::min(chain, other);
      for (std::size_t e = 0; e < engine_count_; ++e)
        if (owner_[e] == (std::uint64_t{epoch_} << 32 | std::max(chain, other)))
          owner_[e] = std::uint64_t{epoch_} << 32 | std::min(chain, other);
    }
    chain = std::min(chain, other);
  }
  if (chain == kNone) chain = stream;
  for (const EngineId engine : engines) owner_[engine.index()] = std::uint64_t{epoch_} << 32 | chain;
  return chain;
}

/// A chain bears the number of its first stream.
void BatchSimulation::merge_streams(const Topology& machine, const BatchOperation& batch) {
  const auto streams = batch.streams();
  const auto count = static_cast<std::uint32_t>(streams.size());
  if (++epoch_ == 0) {
    std::fill(owner_.begin(), owner_.end(), 0);
    epoch_ = 1;
  }
  chain_of_.resize(count);
  next_.assign(count, kNone);
  head_.clear();
  tail_.resize(count);
  routes_.resize(count);
  for (std::uint32_t s = 0; s < count; ++s) {
    chain_of_[s] = s;
    if (!streams[s].transfer) continue;
    routes_[s] = find_route(machine, *streams[s].transfer);
    if (batch.merging()) chain_of_[s] = merge_into_owner(s, routes_[s].engines);
  }
  for (std::uint32_t s = 0; s < count; ++s) {
    const std::uint32_t chain = chain_of_[s];
    if (chain == s) {
      head_.push_back(s);
    } else {
      next_[tail_[chain]] = s;
    }
    tail_[chain] = s;
  }
}

void BatchSimulation::make_commands(const Topology& machine, Basis basis, const BatchOperation& batch) {
  const auto streams = batch.streams();
  times_.assign(streams.size(), {});
  commands_.clear();
  chains_.clear();
  chain_of_flow_.clear();
  if (++epoch_ == 0) {  // the locks get their owners anew, to see who meets
    std::fill(owner_.begin(), owner_.end(), 0);
    epoch_ = 1;
  }
  for (const std::uint32_t head : head_) {
    chains_.push_back({});
    chains_.back().begin = static_cast<std::uint32_t>(commands_.size());
    for (std::uint32_t s = head; s != kNone; s = next_[s])
      if (streams[s].transfer) add_transfer(machine, s, *streams[s].transfer, routes_[s]);
    for (std::uint32_t s = head; s != kNone; s = next_[s])
      if (streams[s].kernel) add_kernel(machine, basis, s, *streams[s].kernel);
    chains_.back().end = static_cast<std::uint32_t>(commands_.size());
  }
}

std::uint32_t BatchSimulation::add_flow(std::span<const LinkId> first, std::span<const LinkId> second, double weight) {
  const auto chain = static_cast<std::uint32_t>(chains_.size() - 1);
  bandwidth_.add_flow(chain, first, second, weight);
  chain_of_flow_.push_back(chain);
  return static_cast<std::uint32_t>(chain_of_flow_.size() - 1);
}

/// Notes that the chain being made uses a lock, and whether another one does too.
void BatchSimulation::claim(std::uint32_t lock) {
  const std::uint64_t mine = std::uint64_t{epoch_} << 32 | (chains_.size() - 1);
  if (owner_[lock] >> 32 == epoch_ && owner_[lock] != mine) contended_ = true;
  owner_[lock] = mine;
}

/// One transfer as set-up, lead and data.
///
/// A staged copy is one flow over the links of both legs, at the rate of the slower, after a lead in which its first
/// chunk crosses the first leg; every chunk pays the set-up. (The published method has two flows with rates of their
/// own: the faster first leg would run ahead without limit, which a bounded buffer cannot execute.)
void BatchSimulation::add_transfer(const Topology& machine, std::uint32_t stream, const Transfer& transfer,
                                   const RouteView& route) {
  Command command{};
  command.stream = stream;
  const auto in = route.engines[0].value;
  const auto out = route.engines[1].value;
  command.locks = {in, out == in ? kNone : out};
  for (const std::uint32_t lock : command.locks)
    if (lock != kNone) claim(lock);
  command.lead = command.flow = kNone;
  command.bytes = static_cast<double>(transfer.size.count);
  if (transfer.size.count > 0) {
    command.time = transfer_setup_;
    if (route.path == CopyPath::Staged) {
      const std::int64_t chunk = machine.staging_chunk().count;
      command.time *= std::ceil(command.bytes / static_cast<double>(chunk));
      command.lead = add_flow(route.first, {}, route.weight);
      command.lead_bytes = static_cast<double>(std::min(chunk, transfer.size.count));
    }
    command.flow = add_flow(route.first, route.second, route.weight);
  }
  commands_.push_back(command);
}

void BatchSimulation::add_kernel(const Topology& machine, Basis basis, std::uint32_t stream, const Kernel& kernel) {
  Command command{};
  command.stream = stream;
  command.kernel = true;
  command.lead = command.flow = kNone;
  command.locks = {kNone, kNone};
  if (machine.vertex(kernel.on).kind == VertexKind::Gpu) {
    command.locks[0] = static_cast<std::uint32_t>(engine_count_ + kernel.on.index());
    claim(command.locks[0]);
  }
  command.time = as_ns(basis == Basis::Nominal ? kernel.time : kernel.worst);
  commands_.push_back(command);
}

// ---- what planners ask

double BatchSimulation::transfers_alone_ns(std::size_t chain) const {
  double total = 0;
  for (std::uint32_t i = chains_[chain].begin; i < chains_[chain].end; ++i) {
    const Command& command = commands_[i];
    if (command.kernel || command.flow == kNone) continue;
    total += command.time + command.bytes / bandwidth_.alone(command.flow);
    if (command.lead != kNone) total += command.lead_bytes / bandwidth_.alone(command.lead);
  }
  return total;
}

double BatchSimulation::kernels_ns(std::size_t chain) const {
  double total = 0;
  for (std::uint32_t i = chains_[chain].begin; i < chains_[chain].end; ++i)
    if (commands_[i].kernel) total += commands_[i].time;
  return total;
}

// ---- the event loop

void BatchSimulation::run_forward(std::span<const double> starts) {
  TUTTI_EXPECTS(starts.empty() || starts.size() == chains_.size(), "one start a chain, or none at all");
  if (starts.empty()) {
    gates_.assign(chains_.size(), 0);
  } else {
    gates_.assign(starts.begin(), starts.end());
  }
  run(Direction::Forward);
  note_gates();
}

void BatchSimulation::rerun_forward() {
  TUTTI_EXPECTS(gates_.size() == chains_.size(), "the loaded batch has run before");
  for (double& gate : gates_) gate = as_ns(round_down_ns(gate));
  run(Direction::Forward);
  note_gates();
}

void BatchSimulation::run_backward() {
  gates_.assign(chains_.size(), 0);
  run(Direction::Backward);
  mirror();
  note_gates();
}

BatchSimulation::Room BatchSimulation::room() {
  room_order_.resize(chains_.size());
  room_gates_.resize(chains_.size());
  return {room_order_, room_gates_};
}

void BatchSimulation::run(Direction direction) {
  direction_ = direction;
  now_ = 0;
  waited_ = false;
  rates_stale_ = false;
  pieces_.clear();
  active_.clear();
  for (std::size_t c = 0; c < chains_.size(); ++c) {
    Chain& chain = chains_[c];
    chain.done = 0;
    chain.state = State::Gate;
    chain.event = gates_[c];
  }
  for (running_ = chains_.size(); running_ > 0;) {
    now_ = next_event();
    TUTTI_EXPECTS(now_ < kNever, "a chain that is not done has an event ahead");
    const double until = same_instant(now_);
    for (std::uint32_t c = 0; c < chains_.size(); ++c)
      if (chains_[c].event <= until) step(c);
    if (contended_) serve_waiting();
    if (rates_stale_) update_rates();
  }
  latency_ = now_ + batch_setup_;
  if (direction == Direction::Forward && batch_setup_ > 0) {
    for (StreamTimes& times : times_) {
      for (double* time : {&times.transfer_start, &times.transfer_end, &times.kernel_start, &times.kernel_end})
        *time += batch_setup_;
    }
    for (RatePiece& piece : pieces_) {
      piece.start += batch_setup_;
      piece.end += batch_setup_;
    }
  }
}

double BatchSimulation::next_event() const {
  double next = kNever;
  for (const Chain& chain : chains_) next = std::min(next, chain.event);
  return next;
}

void BatchSimulation::step(std::uint32_t c) {
  Chain& chain = chains_[c];
  if (chain.state == State::Gate) {
    begin_command(c);
    return;
  }
  leave_phase(c);
  if (enter_next_phase(c)) return;
  end_command(c);
  begin_command(c);
}

/// The next command of a chain is ready; without contention it starts at once, otherwise `serve_waiting` decides.
void BatchSimulation::begin_command(std::uint32_t c) {
  Chain& chain = chains_[c];
  while (chain.done < chain.end - chain.begin) {
    if (contended_) {
      chain.state = State::Waiting;
      chain.since = now_;
      chain.event = kNever;
      return;
    }
    if (start_command(c)) return;
    end_command(c);
  }
  chain.state = State::Done;
  chain.event = kNever;
  --running_;
}

/// False where the command takes no time and is over.
bool BatchSimulation::start_command(std::uint32_t c) {
  Chain& chain = chains_[c];
  const Command& command = current(chain);
  StreamTimes& times = times_[command.stream];
  (command.kernel ? times.kernel_start : times.transfer_start) = now_;
  if (contended_) {
    for (const std::uint32_t lock : command.locks)
      if (lock != kNone) busy_[lock] = 1;
  }
  chain.phase = 0;
  return enter_next_phase(c);
}

/// Enters the next phase of the current command that takes any time; false where there is none left.
///
/// Forward: set-up, lead, data; backward: data, lead, set-up. A kernel is all set-up.
bool BatchSimulation::enter_next_phase(std::uint32_t c) {
  constexpr std::uint8_t kPhases = 3;
  Chain& chain = chains_[c];
  const Command& command = current(chain);
  chain.since = now_;
  while (chain.phase < kPhases) {
    const int part = direction_ == Direction::Forward ? chain.phase : kPhases - 1 - chain.phase;
    ++chain.phase;
    if (part == 0 && command.time > 0) {
      chain.state = State::Timed;
      chain.event = now_ + command.time;
      return true;
    }
    const std::uint32_t flow = part == 1 ? command.lead : command.flow;
    if (part == 0 || flow == kNone) continue;
    chain.state = State::Flowing;
    chain.flow = flow;
    chain.left = part == 1 ? command.lead_bytes : command.bytes;
    chain.rate = 0;
    chain.event = kNever;
    active_.push_back(flow);
    rates_stale_ = true;
    return true;
  }
  return false;
}

/// Notes the piece that ends now.
void BatchSimulation::settle(Chain& chain) {
  const Command& command = current(chain);
  if (command.kernel || now_ <= chain.since) return;
  const bool data = chain.state == State::Flowing && chain.flow == command.flow;
  pieces_.push_back({command.stream, chain.since, now_, data ? chain.rate : 0});
}

void BatchSimulation::leave_phase(std::uint32_t c) {
  Chain& chain = chains_[c];
  settle(chain);
  if (chain.state != State::Flowing) return;
  active_.erase(std::find(active_.begin(), active_.end(), chain.flow));
  rates_stale_ = true;
}

void BatchSimulation::end_command(std::uint32_t c) {
  Chain& chain = chains_[c];
  const Command& command = current(chain);
  StreamTimes& times = times_[command.stream];
  (command.kernel ? times.kernel_end : times.transfer_end) = now_;
  if (contended_) {
    for (const std::uint32_t lock : command.locks)
      if (lock != kNone) busy_[lock] = 0;
  }
  ++chain.done;
}

// ---- chains that wait for a GPU or an engine

bool BatchSimulation::locks_free(const Command& command) const {
  return std::none_of(command.locks.begin(), command.locks.end(),
                      [&](std::uint32_t lock) { return lock != kNone && busy_[lock] != 0; });
}

/// What a chain still has to do after its current command, nothing else under way.
double BatchSimulation::work_after(const Chain& chain) const {
  double total = 0;
  for (std::uint32_t done = chain.done + 1; done < chain.end - chain.begin; ++done) {
    const Command& command = commands_[direction_ == Direction::Forward ? chain.begin + done : chain.end - 1 - done];
    total += command.time;
    if (command.flow != kNone) total += command.bytes / bandwidth_.alone(command.flow);
    if (command.lead != kNone) total += command.lead_bytes / bandwidth_.alone(command.lead);
  }
  return total;
}

/// Forward: first come, first served. Backward: the longest way still to go, so that it is done last in time and its
/// transfer gets the most room (Jackson's rule, mirrored).
bool BatchSimulation::goes_before(std::uint32_t a, std::uint32_t b) const {
  if (direction_ == Direction::Forward) {
    return chains_[a].since != chains_[b].since ? chains_[a].since < chains_[b].since : a < b;
  }
  const double work_a = work_after(chains_[a]);
  const double work_b = work_after(chains_[b]);
  return work_a != work_b ? work_a > work_b : a > b;
}

void BatchSimulation::serve_waiting() {
  for (;;) {
    std::uint32_t best = kNone;
    for (std::uint32_t c = 0; c < chains_.size(); ++c) {
      if (chains_[c].state != State::Waiting || !locks_free(current(chains_[c]))) continue;
      if (best == kNone || goes_before(c, best)) best = c;
    }
    if (best == kNone) return;
    waited_ |= chains_[best].since < now_;
    if (start_command(best)) continue;
    end_command(best);
    begin_command(best);
  }
}

// ---- rates

void BatchSimulation::update_rates() {
  rates_stale_ = false;
  if (rule_ == RateRule::MaxMin) bandwidth_.max_min(active_, rates_);
  for (const std::uint32_t flow : active_) {
    Chain& chain = chains_[chain_of_flow_[flow]];
    if (chain.rate == rates_[flow]) continue;
    settle(chain);
    chain.left = std::max(0.0, chain.left - chain.rate * (now_ - chain.since));
    chain.rate = rates_[flow];
    chain.since = now_;
    chain.event = now_ + chain.left / chain.rate;
  }
}

/// Turns the times of a backward run round.
void BatchSimulation::mirror() {
  const double end = latency_;  // set-up of the batch included, which precedes everything
  for (StreamTimes& times : times_) {
    times = {end - times.transfer_end, end - times.transfer_start, end - times.kernel_end, end - times.kernel_start, 0};
  }
  std::reverse(pieces_.begin(), pieces_.end());
  for (RatePiece& piece : pieces_) piece = {piece.stream, end - piece.end, end - piece.start, piece.rate};
  for (std::size_t c = 0; c < chains_.size(); ++c) {
    const Command& first = commands_[chains_[c].begin];
    const StreamTimes& times = times_[first.stream];
    gates_[c] = std::max(0.0, (first.kernel ? times.kernel_start : times.transfer_start) - batch_setup_);
  }
}

void BatchSimulation::note_gates() {
  for (std::size_t c = 0; c < chains_.size(); ++c)
    for (std::uint32_t i = chains_[c].begin; i < chains_[c].end; ++i) {
      times_[commands_[i].stream].gate = gates_[c] + batch_setup_;
    }
}

}  // namespace tutti
