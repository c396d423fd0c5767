#include "model/safe_bound.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace tutti {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Cuts beyond these are left out: any selection is safe.
constexpr std::size_t kMostCuts = 32;

/// Keeps rounding on the safe side.
double slightly_later(double ns) { return ns * (1 + 1e-14); }

}  // namespace

// ---- flows that share capacities

void SafeBound::find(std::span<const double> capacities, std::span<BoundedFlow> flows) {
  constexpr int kRounds = 2;
  list_rivals(capacities, flows);
  for (BoundedFlow& flow : flows) flow.finish = kNever;
  for (int round = 0; round < kRounds; ++round)
    for (std::uint32_t f = 0; f < flows.size(); ++f) bound(flows, f);
}

void SafeBound::find_durations(std::span<const double> capacities, std::span<BoundedFlow> flows) {
  list_rivals(capacities, flows);
  for (BoundedFlow& flow : flows) flow.finish = kNever;
  std::vector<double> durations;
  for (std::uint32_t f = 0; f < flows.size(); ++f)
    durations.push_back(slightly_later(slowest(flows, f, {0, kNever}, flows[f].bytes, kNever).time));
  for (std::uint32_t f = 0; f < flows.size(); ++f) flows[f].finish = durations[f];
}

void SafeBound::list_rivals(std::span<const double> capacities, std::span<const BoundedFlow> flows) {
  values_ = capacities;
  rivals_.clear();
  for (std::uint32_t f = 0; f < flows.size(); ++f) {
    const BoundedFlow& flow = flows[f];
    for (const CapacityUse& use : flow.uses)
      rivals_.push_back({use.capacity.value, f, flow.weight * use.cost, flow.bytes / flow.weight});
  }
  std::sort(rivals_.begin(), rivals_.end(), [](const Rival& a, const Rival& b) {
    return a.capacity != b.capacity ? a.capacity < b.capacity : a.limit < b.limit;
  });
  rival_begin_.resize(std::max(rival_begin_.size(), capacities.size()));
  rival_end_.resize(rival_begin_.size());
  for (std::uint32_t i = 0; i < rivals_.size(); ++i) {
    if (i == 0 || rivals_[i].capacity != rivals_[i - 1].capacity) rival_begin_[rivals_[i].capacity] = i;
    rival_end_[rivals_[i].capacity] = i + 1;
  }
}

std::span<const SafeBound::Rival> SafeBound::rivals(const CapacityUse& use) const {
  const std::uint32_t begin = rival_begin_[use.capacity.index()];
  return {rivals_.data() + begin, rival_end_[use.capacity.index()] - begin};
}

// ---- one flow

void SafeBound::bound(std::span<BoundedFlow> flows, std::uint32_t f) {
  BoundedFlow& flow = flows[f];
  const double start = flow.delay + (flow.after == kNone ? 0 : flows[flow.after].finish);
  double finish = std::min(flow.finish, start + slowest(flows, f, {start, flow.finish}, flow.bytes, kNever).time);
  find_cuts(flows, f, {start, finish});
  double left = flow.bytes;
  double at = start;
  for (const double cut : cuts_) {
    const Progress progress = slowest(flows, f, {at, cut}, left, cut - at);
    if (progress.bytes == left) {
      finish = std::min(finish, at + progress.time);
      break;
    }
    left -= progress.bytes;
    at = cut;
  }
  flow.finish = slightly_later(finish);
}

/// Where rivals may start or must be over inside a window, in order, and the end of all time.
void SafeBound::find_cuts(std::span<const BoundedFlow> flows, std::uint32_t f, Window window) {
  cuts_.clear();
  for (const CapacityUse& use : flows[f].uses) {
    for (const Rival& rival : rivals(use)) {
      const BoundedFlow& other = flows[rival.flow];
      for (const double cut : {other.earliest, other.finish})
        if (cut > window.begin && cut < window.end) cuts_.push_back(cut);
    }
  }
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
  if (cuts_.size() > kMostCuts) {
    for (std::size_t i = 0; i < kMostCuts; ++i) cuts_[i] = cuts_[i * cuts_.size() / kMostCuts];
    cuts_.resize(kMostCuts);
  }
  cuts_.push_back(kNever);
}

/// The slowest that a flow can be against the rivals of a window: the time in which it moves so many bytes at least, or
/// the bytes that it moves at least in so much time, whichever is reached first.
SafeBound::Progress SafeBound::slowest(std::span<const BoundedFlow> flows, std::uint32_t f, Window window, double bytes,
                                       double time) {
  const BoundedFlow& flow = flows[f];
  const auto counts = [&](const Rival& rival) {
    const BoundedFlow& other = flows[rival.flow];
    return other.chain != flow.chain && other.earliest < window.end && other.finish > window.begin;
  };
  links_.clear();
  for (const CapacityUse& use : flow.uses) {
    const auto all = rivals(use);
    double load = flow.weight * use.cost;
    for (const Rival& rival : all) load += counts(rival) ? rival.load : 0;
    links_.push_back({all.data(), all.data() + all.size(), values_[use.capacity.index()], load, 0});
  }
  links_.push_back({nullptr, nullptr, flow.alone, flow.weight, 0});
  const double share = bytes / flow.weight;
  double left = share;
  double passed = 0;
  for (;;) {
    Link* slow = &links_.front();
    for (Link& link : links_)
      if (link.load * slow->value > slow->load * link.value) slow = &link;
    const double slope = slow->load / slow->value;
    while (slow->next != slow->end && !counts(*slow->next)) ++slow->next;
    const double until = slow->next == slow->end ? kNever : std::max(0.0, slow->next->limit - slow->handed_out);
    const double part = std::min({until, left, (time - passed) / slope});
    if (part < until) {  // the bytes or the time are used up
      if (part == left) return {bytes, passed + left * slope};
      return {(share - left + part) * flow.weight, time};
    }
    left -= part;
    passed += part * slope;
    slow->handed_out += part;
    slow->load -= slow->next->load;
    ++slow->next;
  }
}

// ---- batches

namespace {

/// The flows of a loaded batch, and from them on what each chain does until it is over.
class BatchBound {
 public:
  /// @param gates  [chains] ns, without the set-up of the batch.
  BatchBound(std::span<const double> capacities, const BatchSimulation& loaded, std::span<const double> gates,
             double gate_jitter)
      : loaded_(loaded), gates_(gates), gate_jitter_(gate_jitter), waits_(loaded.batch().step_count(), 0) {
    SafeBound bound;
    if (loaded.contended()) {
      add_flows();
      bound.find_durations(capacities, flows_);
      find_waits();
    }
    add_flows();
    bound.find(capacities, flows_);
  }

  /// Calls `over(stream, ns)` with the latest end of every step.
  template <class Over>
  void for_ends(Over over) const {
    auto flow = flows_.begin();
    for (std::size_t c = 0; c < loaded_.chain_count(); ++c) {
      const auto [begin, end] = loaded_.batch().chains()[c];
      double at = gates_[c] + gate_jitter_;
      for (std::uint32_t i = begin; i < end; ++i) {
        const Step& step = loaded_.batch().step(i);
        at = step.flow == kNone ? at + waits_[i] + step.amount : (flow++)->finish;
        over(step.stream, at);
      }
    }
  }

 private:
  void add_flows() {
    const BandwidthModel& bandwidth = loaded_.bandwidth();
    flows_.clear();
    for (std::size_t c = 0; c < loaded_.chain_count(); ++c) {
      const auto [begin, end] = loaded_.batch().chains()[c];
      double delay = gates_[c] + gate_jitter_;
      std::uint32_t after = kNone;
      for (std::uint32_t i = begin; i < end; ++i) {
        const Step& step = loaded_.batch().step(i);
        delay += waits_[i];
        if (step.flow == kNone) {
          delay += step.amount;
          continue;
        }
        BoundedFlow flow;
        flow.bytes = step.amount;
        flow.weight = bandwidth.weight(step.flow);
        flow.alone = bandwidth.most(step.flow);
        flow.uses = bandwidth.uses(step.flow);
        flow.chain = static_cast<std::uint32_t>(c);
        flow.earliest = gates_[c];  // what comes before it may take no time at all
        flow.after = std::exchange(after, static_cast<std::uint32_t>(flows_.size()));
        flow.delay = std::exchange(delay, 0);
        flows_.push_back(flow);
      }
    }
  }

  /// A chain waits for a GPU or an engine, in all its commands together, no longer than others hold it. That is added
  /// where the chain wants it first.
  void find_waits() {
    const BatchChains& batch = loaded_.batch();
    std::vector<double> held(batch.lock_count(), 0);
    const auto for_locks = [&](std::uint32_t i, auto visit) {
      for (const std::uint32_t lock : batch.locks(batch.step(i)))
        if (lock != kNone) visit(lock);
    };
    std::vector<double> lengths;  // [steps] at most
    auto flow = flows_.begin();
    for (std::uint32_t i = 0; i < batch.step_count(); ++i) {
      lengths.push_back(batch.step(i).flow == kNone ? batch.step(i).amount : (flow++)->finish);
      for_locks(i, [&](std::uint32_t lock) { held[lock] += lengths[i]; });
    }
    for (const auto& [begin, end] : batch.chains()) {
      std::map<std::uint32_t, double> by_others;  // locks of this chain
      for (std::uint32_t i = begin; i < end; ++i)
        for_locks(i, [&, i](std::uint32_t lock) { by_others.emplace(lock, held[lock]).first->second -= lengths[i]; });
      for (std::uint32_t i = begin; i < end; ++i)
        for_locks(i, [&, i](std::uint32_t lock) { waits_[i] += std::max(0.0, std::exchange(by_others[lock], 0)); });
    }
  }

  const BatchSimulation& loaded_;
  std::span<const double> gates_;
  double gate_jitter_;
  std::vector<double> waits_;       // [steps] before it
  std::vector<BoundedFlow> flows_;  // chain by chain
};

}  // namespace

LatestFinish latest_finish(const Planner& planner, const Topology& machine, const BatchOperation& batch,
                           const Timeline& plan, Basis basis, Duration gate_jitter) {
  BatchSimulation loaded;
  loaded.load(machine, basis, batch, planner.rates);
  const std::vector<double> gates = gates_of(loaded, plan);
  const BatchBound bound(machine.capacities(basis), loaded, gates, as_ns(gate_jitter));
  LatestFinish latest{std::vector<Duration>(batch.streams().size()), {}};
  bound.for_ends([&](std::uint32_t stream, double ns) {
    latest.streams[stream] = std::max(latest.streams[stream], round_up_ns(loaded.batch_setup_ns() + ns));
    latest.batch = std::max(latest.batch, latest.streams[stream]);
  });
  return latest;
}

}  // namespace tutti
