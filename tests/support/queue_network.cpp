#include "tests/support/queue_network.hpp"

#include <algorithm>
#include <tuple>

#include "model/base/expects.hpp"
#include "model/batch/safe_bound.hpp"

namespace tutti::internal::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The textbook's filling: lambda rises until a capacity is full or a flow at its own rate.
class Filling {
 public:
  explicit Filling(const QueueNetwork& network) : network_(network) {}

  /// @param kinds  of the active flows
  const std::vector<double>& rates(const std::vector<std::uint32_t>& kinds) {
    rates_.assign(kinds.size(), 0);
    fixed_.assign(kinds.size(), 0);
    left_ = network_.capacities;
    for (std::size_t open = kinds.size(); open > 0;) {
      load_.assign(left_.size(), 0);
      double lambda = kInfinity;
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (fixed_[i]) continue;
        const auto& kind = network_.kinds[kinds[i]];
        lambda = std::min(lambda, kind.alone / kind.weight);
        for (const CapacityUse& use : kind.uses) load_[use.capacity.index()] += kind.weight * use.cost;
      }
      for (std::size_t c = 0; c < left_.size(); ++c)
        if (load_[c] > 0) lambda = std::min(lambda, left_[c] / load_[c]);
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (fixed_[i]) continue;
        const auto& kind = network_.kinds[kinds[i]];
        bool full = kind.alone / kind.weight <= lambda * (1 + 1e-12);
        for (const CapacityUse& use : kind.uses)
          full |= left_[use.capacity.index()] <= lambda * load_[use.capacity.index()] * (1 + 1e-12);
        if (!full) continue;
        fixed_[i] = 2;
      }
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (fixed_[i] != 2) continue;
        const auto& kind = network_.kinds[kinds[i]];
        fixed_[i] = 1;
        --open;
        rates_[i] = lambda * kind.weight;
        for (const CapacityUse& use : kind.uses) left_[use.capacity.index()] -= rates_[i] * use.cost;
      }
    }
    return rates_;
  }

 private:
  const QueueNetwork& network_;
  std::vector<double> rates_, left_, load_;
  std::vector<char> fixed_;
};

class Run {
 public:
  explicit Run(const QueueNetwork& network) : network_(network), filling_(network), state_(network.queues.size()) {
    for (const auto& queue : network.queues) {
      run_.starts.emplace_back(queue.steps.size(), kInfinity);
      run_.ends.emplace_back(queue.steps.size(), kInfinity);
    }
    busy_.assign(network.lock_count, 0);
    queues_.resize(network.lock_count);
    heads_.assign(network.lock_count, 0);
    for (const auto& at : network.order)
      for (const std::uint32_t lock : step(at).locks)
        if (lock != kNone) queues_[lock].push_back(at);
  }

  QueueRun take() {
    for (std::uint32_t c = 0; c < state_.size(); ++c) state_[c].since = network_.queues[c].gate;
    while (next()) {
    }
    return std::move(run_);
  }

 private:
  struct State {
    std::uint32_t at = 0;
    bool running = false;
    double since = 0;  // may start
    double time = 0, bytes = 0;
  };

  const QueueNetwork::Step& step(QueueNetwork::Position at) const { return network_.queues[at.first].steps[at.second]; }

  bool may_start(std::uint32_t c) const {
    const QueueNetwork::Position at{c, state_[c].at};
    for (const std::uint32_t lock : step(at).locks) {
      if (lock == kNone) continue;
      if (busy_[lock]) return false;
      if (!network_.order.empty() && queues_[lock][heads_[lock]] != at) return false;
    }
    return true;
  }

  /// Starts all that may, first come, first served, and ends what has nothing to do.
  void settle() {
    for (;;) {
      std::uint32_t best = kNone;
      for (std::uint32_t c = 0; c < state_.size(); ++c) {
        const State& state = state_[c];
        if (state.running || state.at == network_.queues[c].steps.size() || state.since > now_) continue;
        if (may_start(c) && (best == kNone || state.since < state_[best].since)) best = c;
      }
      if (best == kNone) return;
      State& state = state_[best];
      const auto& command = step({best, state.at});
      run_.starts[best][state.at] = now_;
      state.running = true;
      state.time = command.time;
      state.bytes = command.bytes;
      for (const std::uint32_t lock : command.locks)
        if (lock != kNone) busy_[lock] = 1;
      if (state.time == 0 && state.bytes == 0) end(best);
    }
  }

  void end(std::uint32_t c) {
    State& state = state_[c];
    for (const std::uint32_t lock : step({c, state.at}).locks) {
      if (lock == kNone || !busy_[lock]) continue;
      busy_[lock] = 0;
      ++heads_[lock];
    }
    run_.ends[c][state.at++] = now_;
    state.running = false;
    state.since = now_;
  }

  bool next() {
    settle();
    flows_.clear();
    kinds_.clear();
    double after = kInfinity;
    for (std::uint32_t c = 0; c < state_.size(); ++c) {
      const State& state = state_[c];
      if (!state.running) {
        if (state.at < network_.queues[c].steps.size() && state.since > now_)
          after = std::min(after, state.since - now_);
      } else if (state.time > 0) {
        after = std::min(after, state.time);
      } else {
        flows_.push_back(c);
        kinds_.push_back(step({c, state.at}).kind);
      }
    }
    const auto& rates = filling_.rates(kinds_);
    for (std::size_t i = 0; i < flows_.size(); ++i) after = std::min(after, state_[flows_[i]].bytes / rates[i]);
    if (after == kInfinity) return false;
    now_ += after;
    const double noise = 1e-12 * now_;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      State& state = state_[flows_[i]];
      state.bytes -= rates[i] * after;
      if (state.bytes <= rates[i] * noise) state.bytes = 0;
    }
    for (std::uint32_t c = 0; c < state_.size(); ++c) {
      State& state = state_[c];
      if (!state.running) {
        if (state.since > now_ && state.since <= now_ + noise) state.since = now_;
        continue;
      }
      if (state.time > 0) {
        state.time -= after;
        if (state.time <= noise) state.time = 0;
      }
      if (state.time == 0 && state.bytes == 0) end(c);
    }
    return true;
  }

  const QueueNetwork& network_;
  Filling filling_;
  std::vector<State> state_;
  std::vector<char> busy_;
  std::vector<std::vector<QueueNetwork::Position>> queues_;
  std::vector<std::size_t> heads_;
  std::vector<std::uint32_t> flows_, kinds_;
  double now_ = 0;
  QueueRun run_;
};

}  // namespace

QueueRun run(const QueueNetwork& network) { return Run(network).take(); }

std::vector<QueueNetwork::Position> order_of(const QueueRun& run) {
  std::vector<QueueNetwork::Position> order;
  for (std::uint32_t c = 0; c < run.starts.size(); ++c)
    for (std::uint32_t s = 0; s < run.starts[c].size(); ++s) order.emplace_back(c, s);
  const auto key = [&](const QueueNetwork::Position& at) {
    return std::tuple(run.starts[at.first][at.second], run.ends[at.first][at.second], at);
  };
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return order;
}

StepTimes bound(const QueueNetwork& network) {
  std::vector<BoundedStep> steps;
  const auto queue_count = static_cast<std::uint32_t>(network.queues.size());
  std::vector<std::uint32_t> last_of_queue(queue_count, kNone), last_of_lock(network.lock_count, kNone);
  for (const auto& [c, s] : network.order) {
    const QueueNetwork::EngineQueue& queue = network.queues[c];
    const QueueNetwork::Step& from = queue.steps[s];
    BoundedStep& step = steps.emplace_back();
    const auto position = static_cast<std::uint32_t>(steps.size() - 1);
    step.time = from.time;
    if (from.kind != kNone) {
      const QueueNetwork::Kind& kind = network.kinds[from.kind];
      step.bytes = from.bytes;
      step.weight = kind.weight;
      step.alone = kind.alone;
      step.uses = kind.uses;
    }
    step.locks = from.locks;
    step.group = !network.grouped_by_lock ? c : from.kind == kNone ? kNone : queue_count + from.locks[0];
    step.earliest = queue.gate;
    step.release = s == 0 ? queue.gate + network.gate_jitter : 0;
    step.after[0] = std::exchange(last_of_queue[c], position);
    for (std::size_t l = 0; l < 2; ++l)
      if (from.locks[l] != kNone) step.after[1 + l] = std::exchange(last_of_lock[from.locks[l]], position);
  }
  SafeBound safe_bound;
  safe_bound.find(network.capacities, steps);
  StepTimes finishes;
  for (const auto& queue : network.queues) finishes.emplace_back(queue.steps.size(), 0);
  for (std::size_t i = 0; i < steps.size(); ++i)
    finishes[network.order[i].first][network.order[i].second] = steps[i].finish;
  return finishes;
}

namespace {

std::uint32_t random_kind(QueueNetwork& network, bool weighted, Random& random) {
  const auto links = static_cast<int>(network.capacities.size());
  std::vector<std::uint32_t> order;
  for (int l = 0; l < links; ++l) order.push_back(static_cast<std::uint32_t>(l));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  order.resize(static_cast<std::size_t>(std::min(links, random.between(1, 3))));
  QueueNetwork::Kind kind;
  for (const std::uint32_t l : order)
    kind.uses.push_back({CapacityId(l), weighted && random.one_in(2) ? random.real(0.5, 2) : 1.0});
  kind.weight = weighted ? random.real(0.5, 2) : 1.0;
  if (random.one_in(4)) kind.alone = random.real(1, 10);
  network.kinds.push_back(std::move(kind));
  return static_cast<std::uint32_t>(network.kinds.size() - 1);
}

/// Puts a link in a row with one that is there: the same flows cross it, or some of them.
void add_in_a_row(QueueNetwork& network, Random& random) {
  const std::size_t first = random.below(network.capacities.size());
  const CapacityId second(network.capacities.size());
  network.capacities.push_back(network.capacities[first] * (random.one_in(2) ? 1 : random.real(0.7, 1.5)));
  const bool all = !random.one_in(3), alike = random.one_in(2);
  for (QueueNetwork::Kind& kind : network.kinds) {
    const auto use = std::ranges::find(kind.uses, CapacityId(first), &CapacityUse::capacity);
    if (use == kind.uses.end() || (!all && random.one_in(3))) continue;
    const double cost = use->cost * (alike ? 1 : random.real(0.7, 1.1));
    kind.uses.push_back({second, cost});
  }
}

}  // namespace

QueueNetwork random_network(Random& random, const NetworkTraits& traits) {
  QueueNetwork network;
  for (int l = random.between(1, 6); l > 0; --l) network.capacities.push_back(random.real(1, 10));
  const bool weighted = random.one_in(3);
  const bool costs = !traits.plain && random.one_in(3);
  const bool kernels = !traits.plain && random.one_in(3);
  const bool second_locks = !traits.plain && random.one_in(6);
  network.grouped_by_lock = !traits.plain && random.one_in(5);
  if (!traits.plain && random.one_in(4)) network.gate_jitter = random.real(0, 10);
  const int engines = random.between(1, 7);
  const auto gpu = [&] { return static_cast<std::uint32_t>(engines + random.between(0, engines / 2)); };
  network.lock_count = static_cast<std::uint32_t>(2 * engines + 1);
  for (int e = 0; e < engines; ++e) {
    const int transfers = random.between(1, traits.most_transfers);
    const int routes = random.one_in(2) ? 1 : random.between(1, traits.most_routes);
    std::vector<std::uint32_t> kinds;
    for (int r = 0; r < routes; ++r) kinds.push_back(random_kind(network, weighted, random));
    const double gate = random.one_in(2) ? 0 : random.real(0, 40);
    const double each = costs ? random.real(0, 1) : 0;
    for (int t = 0; t < transfers; ++t) {
      if (t == 0 || network.grouped_by_lock) network.queues.push_back({gate, {}});
      if (network.grouped_by_lock && random.one_in(2)) network.queues.back().gate = random.real(0, 40);
      QueueNetwork::Step step;
      step.time = each;
      step.bytes = random.real(1, 100) / transfers;
      step.kind = kinds[random.below(kinds.size())];
      if (network.grouped_by_lock || second_locks) step.locks[0] = static_cast<std::uint32_t>(e);
      if (second_locks && engines > 1 && random.one_in(6))
        step.locks[1] = static_cast<std::uint32_t>((e + random.between(1, engines - 1)) % engines);
      network.queues.back().steps.push_back(step);
      if (!kernels || (t + 1 < transfers && !network.grouped_by_lock)) continue;
      for (int k = random.between(0, 2); k > 0; --k) {
        QueueNetwork::Step kernel;
        kernel.time = random.one_in(8) ? 0 : random.real(0, 20);
        kernel.locks[0] = gpu();
        network.queues.back().steps.push_back(kernel);
      }
    }
  }
  if (random.one_in(2))
    for (int rows = random.between(1, 3); rows > 0; --rows) add_in_a_row(network, random);
  network.order = order_of(run(network));
  return network;
}

QueueNetwork perturbed(const QueueNetwork& declared, Random& random) {
  QueueNetwork other = declared;
  const auto share = [&, dropped = random.between(2, 8)](double most) {
    if (random.one_in(static_cast<std::uint64_t>(dropped))) return 0.0;
    return most * (random.one_in(2) ? 1 : random.real(0, 1));
  };
  for (auto& queue : other.queues) {
    const bool whole = random.one_in(8);
    for (auto& step : queue.steps) {
      step.bytes = whole ? 0 : share(step.bytes);
      step.time = share(step.time);
    }
    if (!random.one_in(3)) queue.gate += random.real(0, declared.gate_jitter);
  }
  const bool all = random.one_in(4);
  const std::size_t single = random.below(2 * other.capacities.size());
  for (std::size_t c = 0; c < other.capacities.size(); ++c)
    if (all || c == single) other.capacities[c] *= random.real(1, 3);
  for (auto& kind : other.kinds)
    if (random.one_in(8)) kind.alone *= random.real(1, 3);
  return other;
}

QueueNetwork changed(const QueueNetwork& declared, QueueNetwork from, Random& random) {
  const auto share = [&](double most) {
    return random.one_in(2) ? (random.one_in(2) ? 0 : most) : random.real(0, most);
  };
  const std::size_t c = random.below(from.queues.size());
  auto& queue = from.queues[c];
  const auto& most = declared.queues[c];
  switch (random.below(6)) {
    case 0: {
      const std::size_t at = random.below(from.capacities.size());
      from.capacities[at] = declared.capacities[at] * (random.one_in(3) ? 1 : random.real(1, 10));
      break;
    }
    case 1: queue.gate = most.gate + (random.one_in(3) ? 0 : random.real(0, declared.gate_jitter)); break;
    case 2: {
      const bool none = random.one_in(2);
      for (std::size_t s = 0; s < queue.steps.size(); ++s) {
        queue.steps[s].bytes = none ? 0 : most.steps[s].bytes;
        queue.steps[s].time = none ? 0 : most.steps[s].time;
      }
      break;
    }
    default: {
      const std::size_t s = random.below(queue.steps.size());
      if (most.steps[s].time > 0 && random.one_in(2)) {
        queue.steps[s].time = share(most.steps[s].time);
      } else {
        queue.steps[s].bytes = share(most.steps[s].bytes);
      }
    }
  }
  return from;
}

}  // namespace tutti::internal::test
