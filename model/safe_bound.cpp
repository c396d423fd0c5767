#include "model/safe_bound.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace tutti {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Windows beyond these are not told apart: any selection is safe.
constexpr std::size_t kMostWindows = 64;

/// Less than this is not worth another round.
constexpr double kClearly = 1 - 1e-3;

/// Keeps rounding on the safe side.
double slightly_later(double ns) { return ns * (1 + 1e-14); }

/// A sum without one of its parts, not below what is left of it: a small rest of large parts has their rounding in it.
double without(double sum, double part) { return sum - part + sum * 0x1p-50; }

}  // namespace

// ---- flows that share capacities

void SafeBound::find(std::span<const double> capacities, std::span<BoundedFlow> flows) {
  constexpr int kRounds = 2;
  if (flows.empty()) return;
  list_rivals(capacities, flows);
  for (BoundedFlow& flow : flows) flow.finish = kNever;
  for (std::uint32_t f = 0; f < flows.size(); ++f) bound_at_once(flows, f);
  by_start_.resize(flows.size());
  std::iota(by_start_.begin(), by_start_.end(), 0U);
  std::sort(by_start_.begin(), by_start_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(flows[a].earliest, a) < std::pair(flows[b].earliest, b);
  });
  for (int round = 0; round < kRounds; ++round) {
    make_windows(flows);
    bool narrower = false;
    for (const std::uint32_t f : by_start_) narrower |= bound_by_windows(flows, f);
    if (!narrower) break;
  }
}

void SafeBound::find_durations(std::span<const double> capacities, std::span<BoundedFlow> flows) {
  list_rivals(capacities, flows);
  for (BoundedFlow& flow : flows) flow.finish = kNever;
  std::vector<double> durations;
  for (std::uint32_t f = 0; f < flows.size(); ++f)
    durations.push_back(slightly_later(slowest(flows, f, {0, kNever}, flows[f].bytes, kNever).time));
  for (std::uint32_t f = 0; f < flows.size(); ++f) flows[f].finish = durations[f];
}

void SafeBound::list_rivals(std::span<const double> values, std::span<const BoundedFlow> flows) {
  if (capacities_.size() < values.size()) capacities_.resize(values.size());
  if (++epoch_ == 0) {
    for (Capacity& capacity : capacities_) capacity.epoch = 0;
    epoch_ = 1;
  }
  used_ = 0;
  by_limit_.resize(flows.size());
  std::uint32_t uses = 0;
  for (std::uint32_t f = 0; f < flows.size(); ++f) {
    by_limit_[f] = {flows[f].bytes / flows[f].weight, f};
    for (const CapacityUse& use : flows[f].uses) {
      Capacity& capacity = capacities_[use.capacity.index()];
      if (capacity.epoch != epoch_) capacity = {1 / values[use.capacity.index()], 0, 0, used_++, epoch_, false};
      ++capacity.end;  // counts, at first
      ++uses;
    }
  }
  std::sort(by_limit_.begin(), by_limit_.end());
  rivals_.resize(uses);
  std::uint32_t next = 0;
  for (const auto& [limit, f] : by_limit_) {
    for (const CapacityUse& use : flows[f].uses) {
      Capacity& capacity = capacities_[use.capacity.index()];
      if (!capacity.placed) {
        capacity.begin = next;
        next += std::exchange(capacity.end, next);
        capacity.placed = true;
      }
      rivals_[capacity.end++] = {f, flows[f].weight * use.cost, limit};
    }
  }
}

/// Cuts time where flows may start or must be over, and adds up what they take of each capacity in between.
void SafeBound::make_windows(std::span<const BoundedFlow> flows) {
  cuts_.clear();
  for (const BoundedFlow& flow : flows) {
    cuts_.push_back(flow.earliest);
    cuts_.push_back(flow.finish);
  }
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
  if (cuts_.size() > kMostWindows) {
    const std::size_t all = cuts_.size();
    for (std::size_t i = 0; i < kMostWindows; ++i) cuts_[i] = cuts_[i * all / kMostWindows];
    cuts_.resize(kMostWindows);
  }
  if (cuts_.back() < kNever) cuts_.push_back(kNever);
  const std::size_t windows = cuts_.size() - 1;
  loads_.assign(windows * used_, 0);
  for (const BoundedFlow& flow : flows) {
    std::size_t w = 0;
    while (cuts_[w + 1] <= flow.earliest) ++w;
    for (; w < windows && cuts_[w] < flow.finish; ++w)
      for (const CapacityUse& use : flow.uses)
        loads_[w * used_ + capacities_[use.capacity.index()].place] += flow.weight * use.cost;
  }
}

// ---- one flow

double SafeBound::start_of(std::span<const BoundedFlow> flows, const BoundedFlow& flow) const {
  return flow.delay + (flow.after == kNone ? 0 : flows[flow.after].finish);
}

/// All rivals that can ever meet it, each with all of its bytes.
void SafeBound::bound_at_once(std::span<BoundedFlow> flows, std::uint32_t f) {
  BoundedFlow& flow = flows[f];
  const double start = start_of(flows, flow);
  flow.finish = slightly_later(start + slowest(flows, f, {start, kNever}, flow.bytes, kNever).time);
}

/// From window to window. Where a window ends before some rival can have moved all of its bytes, all keep up and the
/// slope of the fullest capacity tells; otherwise the bytes are handed out slope by slope.
/// @return whether the finish is clearly earlier than before.
bool SafeBound::bound_by_windows(std::span<BoundedFlow> flows, std::uint32_t f) {
  BoundedFlow& flow = flows[f];
  double least_limit = flow.bytes / flow.weight;
  for (const CapacityUse& use : flow.uses)
    least_limit = std::min(least_limit, rivals_[capacities_[use.capacity.index()].begin].limit);
  double at = start_of(flows, flow);
  double left = flow.bytes;
  const std::size_t windows = cuts_.size() - 1;
  std::size_t w = 0;
  while (w + 1 < windows && cuts_[w + 1] <= at) ++w;
  for (; w < windows && at < flow.finish; ++w) {
    const double time = cuts_[w + 1] - at;
    const double moved = time / slope_in(flows, f, w) * flow.weight;
    Progress progress{moved, time};
    if (moved >= least_limit * flow.weight || moved >= left)
      progress = slowest(flows, f, {at, cuts_[w + 1]}, left, time);
    if (progress.bytes >= left) {
      const double before = flow.finish;
      flow.finish = std::min(before, slightly_later(at + progress.time));
      leave_windows(flow, before);
      return flow.finish < before * kClearly;
    }
    left -= progress.bytes;
    at = cuts_[w + 1];
  }
  return false;
}

/// A flow that is over earlier than before makes room in the windows after its end.
void SafeBound::leave_windows(const BoundedFlow& flow, double before) {
  for (std::size_t w = cuts_.size() - 1; w-- > 0 && cuts_[w] >= flow.finish;)
    if (cuts_[w] < before)
      for (const CapacityUse& use : flow.uses) {
        double& load = loads_[w * used_ + capacities_[use.capacity.index()].place];
        load = without(load, flow.weight * use.cost);
      }
}

/// ns for each byte per weight while all that may be active in a window keep up.
double SafeBound::slope_in(std::span<const BoundedFlow> flows, std::uint32_t f, std::size_t window) const {
  const BoundedFlow& flow = flows[f];
  double slope = flow.weight / flow.alone;
  for (const CapacityUse& use : flow.uses) {
    const Capacity& capacity = capacities_[use.capacity.index()];
    slope = std::max(slope, loads_[window * used_ + capacity.place] * capacity.inverse);
  }
  return slope;
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
    const Capacity& capacity = capacities_[use.capacity.index()];
    const Rival* const begin = rivals_.data() + capacity.begin;
    const Rival* const end = rivals_.data() + capacity.end;
    double load = flow.weight * use.cost;
    for (const Rival* rival = begin; rival != end; ++rival) load += counts(*rival) ? rival->load : 0;
    links_.push_back({begin, end, capacity.inverse, load, 0});
  }
  links_.push_back({nullptr, nullptr, 1 / flow.alone, flow.weight, 0});
  const double share = bytes / flow.weight;
  double left = share;
  double passed = 0;
  for (;;) {
    Link* slow = &links_.front();
    for (Link& link : links_)
      if (link.load * link.inverse > slow->load * slow->inverse) slow = &link;
    const double slope = slow->load * slow->inverse;
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
    slow->load = without(slow->load, slow->next->load);
    ++slow->next;
  }
}

// ---- batches

std::span<const double> BatchBound::find(const BatchSimulation& loaded, std::span<const double> gates,
                                         double gate_jitter) {
  const BatchChains& batch = loaded.batch();
  const auto capacities = loaded.bandwidth().capacities();
  waits_.assign(batch.step_count(), 0);
  if (loaded.contended()) {
    add_flows(loaded, gates, gate_jitter);
    bound_.find_durations(capacities, flows_);
    find_waits(batch);
  }
  add_flows(loaded, gates, gate_jitter);
  bound_.find(capacities, flows_);
  finishes_.assign(loaded.times().size(), 0);
  auto flow = flows_.begin();
  for (std::size_t c = 0; c < loaded.chain_count(); ++c) {
    const auto [begin, end] = batch.chains()[c];
    double at = loaded.batch_setup_ns() + gates[c] + gate_jitter;
    for (std::uint32_t i = begin; i < end; ++i) {
      const Step& step = batch.step(i);
      at = step.flow == kNone ? at + waits_[i] + step.amount : loaded.batch_setup_ns() + (flow++)->finish;
      finishes_[step.stream] = std::max(finishes_[step.stream], at);
    }
  }
  return finishes_;
}

void BatchBound::add_flows(const BatchSimulation& loaded, std::span<const double> gates, double gate_jitter) {
  const BandwidthModel& bandwidth = loaded.bandwidth();
  flows_.clear();
  for (std::size_t c = 0; c < loaded.chain_count(); ++c) {
    const auto [begin, end] = loaded.batch().chains()[c];
    double delay = gates[c] + gate_jitter;
    std::uint32_t after = kNone;
    for (std::uint32_t i = begin; i < end; ++i) {
      const Step& step = loaded.batch().step(i);
      delay += waits_[i];
      if (step.flow == kNone) {
        delay += step.amount;
        continue;
      }
      BoundedFlow& flow = flows_.emplace_back();
      flow.bytes = step.amount;
      flow.weight = bandwidth.weight(step.flow);
      flow.alone = bandwidth.most(step.flow);
      flow.uses = bandwidth.uses(step.flow);
      flow.chain = static_cast<std::uint32_t>(c);
      flow.earliest = gates[c];  // what comes before it may take no time at all
      flow.after = std::exchange(after, static_cast<std::uint32_t>(flows_.size() - 1));
      flow.delay = std::exchange(delay, 0);
    }
  }
}

/// A chain waits for a GPU or an engine, in all its commands together, no longer than others hold it. That is added
/// where the chain wants it first.
void BatchBound::find_waits(const BatchChains& batch) {
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

LatestFinish latest_finish(const Planner& planner, const Topology& machine, const BatchOperation& batch,
                           const Timeline& plan, Basis basis, Duration gate_jitter) {
  BatchSimulation loaded;
  loaded.load(machine, basis, batch, planner.rates);
  BatchBound bound;
  LatestFinish latest;
  for (const double ns : bound.find(loaded, gates_of(loaded, plan), as_ns(gate_jitter))) {
    const StreamTimeline& planned = plan.streams[latest.streams.size()];
    latest.streams.push_back(std::max(planned.end(), round_up_ns(ns)));
    latest.batch = std::max(latest.batch, latest.streams.back());
  }
  return latest;
}

}  // namespace tutti
