#include "tests/support/slow_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>

#include "model/transfer/transfer_method.hpp"
#include "tests/support/slow_copy.hpp"

namespace tutti::internal::test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// One thing that an engine queue does: a wait of fixed length, or bytes over capacities.
struct Step {
  std::size_t stream = 0;
  bool kernel = false;
  bool first = false;  ///< of its command: takes the locks
  bool last = false;   ///< of its command: gives them back
  double time = 0;
  double bytes = 0;
  SlowFlow flow;
};

using Lock = SlowLock;

struct EngineQueue {
  std::vector<Step> steps;
  std::size_t at = 0;
  double gate = 0;
  bool arrived = false;
  double since = 0;  ///< of the present wait
  bool waiting = false;
  double left = 0;  ///< ns or bytes of the present step
};

class SlowSimulation {
 public:
  SlowSimulation(const Topology& machine, Basis basis, const Batch& batch, RateRule rule)
      : machine_(machine), basis_(basis), batch_(batch), rule_(rule), capacities_(slow_capacities(machine, basis)) {
    capacities_.resize(capacities_.size() + batch.streams().size(), std::numeric_limits<double>::infinity());
  }

  SlowRun run(std::span<const double> gates) {
    run_.times.resize(batch_.streams().size());
    make_queues(gates);
    if (rule_ != RateRule::MaxMin) allocate();
    while (advance()) {
    }
    const double setup = as_ns(machine_.setup().batch.at(basis_));
    run_.latency = now_ + setup;
    for (std::size_t i = 0; i < run_.times.size(); ++i) {
      StreamTimes& t = run_.times[i];
      if (batch_.streams()[i].transfer) t.transfer_start += setup, t.transfer_end += setup;
      if (batch_.streams()[i].kernel) t.kernel_start += setup, t.kernel_end += setup;
    }
    return run_;
  }

 private:
  [[nodiscard]] std::set<Lock> engines(const Transfer& transfer) const {
    std::set<Lock> locks = slow_engines(machine_, transfer, batch_.merging() == Merging::Transitive);
    if (const auto link = last_hop(transfer)) locks.insert({link->index(), 5});
    return locks;
  }

  /// The last link of a copy between GPUs that fills it and takes long enough, where another GPU has such a copy, too.
  [[nodiscard]] std::optional<LinkId> last_hop(const Transfer& transfer) const {
    const auto link = long_landing(transfer);
    const auto shares = [&](const CommandStream& other) {
      return other.transfer && other.transfer->from != transfer.from && long_landing(*other.transfer) == link;
    };
    return link && std::ranges::any_of(batch_.streams(), shares) ? link : std::nullopt;
  }

  [[nodiscard]] std::optional<LinkId> long_landing(const Transfer& transfer) const {
    const RouteView route = find_route(machine_, transfer);
    if (!route.method.peer_traffic || batch_.merging() == Merging::Transitive) return std::nullopt;
    const std::vector<LinkId> links(route.first.begin(), route.first.end());
    const SlowFlow flow{route.weight, slow_costs(machine_, links)};
    const double rate = slow_max_min(slow_capacities(machine_, Basis::Nominal), {&flow, 1}).front();
    const double bytes = static_cast<double>(transfer.size.count);
    const bool is_long = bytes > 0 && bytes / rate >= 20 * std::max(4'000.0, as_ns(machine_.setup().handover.nominal));
    const bool fills = slow_capacities(machine_, Basis::Nominal)[links.back().index()] <= 1.1 * rate;
    return is_long && fills ? std::optional(links.back()) : std::nullopt;
  }

  /// The engines by which streams are merged: the issuing one, or all.
  [[nodiscard]] std::set<Lock> merges_by(const Transfer& transfer) const {
    std::set<Lock> locks = engines(transfer);
    if (batch_.merging() == Merging::Off) return {};
    if (batch_.merging() == Merging::Transitive || locks.size() == 1) return locks;
    const std::size_t source = transfer.from.index();  // of a staged copy: the one of its first leg
    std::erase_if(locks, [&](const Lock& lock) { return lock.second == 5 || lock.first != source; });
    return locks;
  }

  [[nodiscard]] std::set<Lock> locks_of(const Step& step) const {
    const CommandStream& stream = batch_.streams()[step.stream];
    if (!step.kernel) return engines(*stream.transfer);
    if (machine_.vertex(stream.kernel->on).kind != VertexKind::Gpu) return {};
    return {{stream.kernel->on.index(), 2}};
  }

  /// Streams that share an engine, directly or through others, in the order of the file.
  [[nodiscard]] std::vector<std::vector<std::size_t>> groups() const {
    std::vector<std::vector<std::size_t>> groups;
    std::vector<std::set<Lock>> locks;
    for (std::size_t s = 0; s < batch_.streams().size(); ++s) {
      const auto& transfer = batch_.streams()[s].transfer;
      std::vector<std::size_t> group{s};
      std::set<Lock> taken = transfer ? merges_by(*transfer) : std::set<Lock>{};
      for (std::size_t g = groups.size(); g-- > 0;) {
        const bool meets = std::any_of(taken.begin(), taken.end(), [&](const Lock& l) { return locks[g].contains(l); });
        if (!meets) continue;
        group.insert(group.end(), groups[g].begin(), groups[g].end());
        taken.insert(locks[g].begin(), locks[g].end());
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(g));
        locks.erase(locks.begin() + static_cast<std::ptrdiff_t>(g));
        g = groups.size();  // it may meet others now
      }
      std::sort(group.begin(), group.end());
      groups.push_back(group);
      locks.push_back(taken);
    }
    std::sort(groups.begin(), groups.end());
    return groups;
  }

  [[nodiscard]] bool is_staged(std::size_t s) const {
    return find_route(machine_, *batch_.streams()[s].transfer).method.chunked;
  }

  /// How many of these streams' copies hold a lock.
  [[nodiscard]] double users(const Lock& lock, std::span<const std::size_t> streams) const {
    return static_cast<double>(std::ranges::count_if(streams, [&](std::size_t s) {
      const auto& transfer = batch_.streams()[s].transfer;
      return transfer && engines(*transfer).contains(lock);
    }));
  }
  [[nodiscard]] double users(const Lock& lock) const {
    std::vector<std::size_t> all(batch_.streams().size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return users(lock, all);
  }

  /// What comes before a copy because of the copy before it in its group, and of those of other groups.
  [[nodiscard]] double passing(std::span<const std::size_t> group, std::size_t s,
                               std::optional<std::size_t> before) const {
    const Transfer& transfer = *batch_.streams()[s].transfer;
    const bool guaranteed = basis_ == Basis::Guaranteed;
    const double handover = as_ns(machine_.setup().handover.at(basis_));
    double ns = 0;
    if (before) {
      const Transfer& last = *batch_.streams()[*before].transfer;
      if (is_staged(s) != is_staged(*before)) {
        ns += handover;
      } else if (last.from != transfer.from || last.to != transfer.to) {
        ns += as_ns(machine_.setup().turn.at(basis_));
      }
    }
    if (is_by_kernel(transfer)) return ns + sharing_gpu(group, *engines(transfer).begin());
    for (const Lock& lock : engines(transfer)) {
      const double own = users(lock, group), others = users(lock) - own;
      if (others == 0) continue;
      if (lock.second == 5) {
        const bool same = before && last_hop(*batch_.streams()[*before].transfer) == last_hop(transfer);
        ns += same && !guaranteed ? 0 : handover;
      } else if (is_staged(s) && lock.first == transfer.to.index()) {
        ns += guaranteed ? 2 * handover : handover * std::min(1.0, others / own);
      }
    }
    return ns;
  }

  /// What comes before a command in the queue of a GPU's kernels, behind no copy of an engine: where others are there.
  [[nodiscard]] double sharing_gpu(std::span<const std::size_t> group, const Lock& gpu) const {
    const auto streams = batch_.streams();
    const auto is_there = [&](std::size_t s) {
      const auto& [name, transfer, kernel, place, copied] = streams[s];
      const bool copies = transfer && is_by_kernel(*transfer) && engines(*transfer).contains(gpu);
      return copies || (kernel && kernel->on.index() == gpu.first);
    };
    const auto is_other = [&](std::size_t s) { return std::ranges::find(group, s) == group.end() && is_there(s); };
    const double handover = as_ns(machine_.setup().handover.at(basis_));
    std::vector<std::size_t> all(streams.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (std::ranges::none_of(all, is_other)) return 0;
    return basis_ == Basis::Nominal ? handover / 2 : handover;
  }

  /// What comes before a kernel on a GPU: the first one behind copies, or one without copies that is not alone there.
  [[nodiscard]] double taking_over(std::span<const std::size_t> group, std::size_t s) const {
    const auto streams = batch_.streams();
    const auto is_on_gpu = [&](std::size_t k) {
      return streams[k].kernel && machine_.vertex(streams[k].kernel->on).kind == VertexKind::Gpu;
    };
    if (!is_on_gpu(s)) return 0;
    const double handover = as_ns(machine_.setup().handover.at(basis_));
    const auto& transfer = streams[s].transfer;
    if (!transfer || is_by_kernel(*transfer)) return sharing_gpu(group, {streams[s].kernel->on.index(), 2});
    const auto first = std::ranges::find_if(group, [&](std::size_t k) { return streams[k].transfer && is_on_gpu(k); });
    return *first == s ? handover : 0;
  }

  [[nodiscard]] SlowFlow flow_over(std::span<const LinkId> links, double weight) const {
    std::vector<double> costs = slow_costs(machine_, links);
    costs.resize(capacities_.size(), 0);
    return {weight, std::move(costs)};
  }

  /// @param passing  ns before it
  void add_transfer(EngineQueue& queue, std::size_t s, double passing) {
    const Transfer& transfer = *batch_.streams()[s].transfer;
    const RouteView route = find_route(machine_, transfer);
    SlowCopy copy = slow_copy(machine_, basis_, capacities_, transfer);
    const double chunk = static_cast<double>(machine_.staging_chunk().count);
    const bool staged = route.method.chunked && copy.bytes > 0;
    const double copies = copy.bytes == 0 ? 0 : staged ? 1 + std::ceil(copy.bytes / chunk) : 1;
    queue.steps.push_back({s, false, true, false, copies * copy.before + passing, 0, {}});
    if (staged) {
      const SlowFlow fill = flow_over({route.first.begin(), route.first.end()}, copy.flow.weight);
      queue.steps.push_back({s, false, false, false, 0, std::min(copy.bytes, chunk), fill});
    }
    const std::size_t own = capacities_.size() - batch_.streams().size() + s;
    capacities_[own] = copy.alone;
    copy.flow.cost[own] = 1;
    if (copy.filling > 0) queue.steps.push_back({s, false, false, false, 0, copy.filling, copy.flow});
    queue.steps.push_back({s, false, false, true, 0, copy.bytes, copy.flow});
  }

  /// A group in the order of its batch.
  [[nodiscard]] std::vector<std::size_t> ordered(std::vector<std::size_t> group) const {
    std::vector<std::size_t> place(batch_.streams().size());
    for (std::size_t i = 0; i < place.size(); ++i) place[batch_.order().empty() ? i : batch_.order()[i]] = i;
    std::sort(group.begin(), group.end(), [&](std::size_t a, std::size_t b) { return place[a] < place[b]; });
    return group;
  }

  double before_first(const std::vector<std::size_t>& group, const Transfer& transfer) const {
    const CopyCost& cost = machine_.setup().transfer.of(counted_class(machine_, transfer));
    const auto copies = [&](std::size_t s) {
      const auto& other = batch_.streams()[s].transfer;
      return other && other->size.count > 0;
    };
    const bool goes_along =
        basis_ == Basis::Nominal && transfer.size <= cost.carried.size && std::ranges::count_if(group, copies) == 1;
    return as_ns(goes_along ? cost.carried.more.nominal : cost.first.at(basis_));
  }

  void make_queues(std::span<const double> gates) {
    std::vector<std::vector<std::size_t>> all;
    for (const auto& group : groups()) all.push_back(ordered(group));
    std::vector<std::size_t> place(batch_.streams().size());
    for (std::size_t i = 0; i < place.size(); ++i) place[batch_.order().empty() ? i : batch_.order()[i]] = i;
    std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return place[a[0]] < place[b[0]]; });
    for (const auto& group : all) {
      EngineQueue queue;
      std::optional<std::size_t> before;
      std::set<CopyKind> copied;
      for (const std::size_t s : group) {
        const auto& transfer = batch_.streams()[s].transfer;
        if (!transfer) continue;
        const bool empty = transfer->size.count == 0;
        const bool is_first = !empty && copied.insert(counted_class(machine_, *transfer)).second;
        const double first = is_first ? before_first(group, *transfer) : 0;
        add_transfer(queue, s, empty ? 0 : first + passing(group, s, before));
        if (!empty) before = s;
      }
      for (const std::size_t s : group) {
        if (!batch_.streams()[s].kernel) continue;
        const Kernel& kernel = *batch_.streams()[s].kernel;
        const Duration time = basis_ == Basis::Nominal ? kernel.time : kernel.worst;
        const bool on_gpu = machine_.vertex(kernel.on).kind == VertexKind::Gpu;
        const double launch = as_ns((on_gpu ? machine_.setup().kernel : machine_.setup().host).at(basis_));
        queue.steps.push_back({s, true, true, true, launch + taking_over(group, s) + as_ns(time), 0, {}});
      }
      queue.steps.front().time += as_ns(machine_.setup().gate.at(basis_));
      queue.gate = gates.empty() ? 0 : gates[group.front()];
      queues_.push_back(queue);
    }
  }

  /// Each capacity split over the streams that cross it, by the larger of what pipeline fill and data ask of it.
  void allocate() {
    shares_.assign(capacities_.size(), 0);
    for (const EngineQueue& queue : queues_)
      for (std::size_t c = 0; c < capacities_.size(); ++c) {
        std::map<std::size_t, double> most;  // of each stream
        for (const Step& step : queue.steps)
          if (step.bytes > 0) most[step.stream] = std::max(most[step.stream], step.flow.weight * step.flow.cost[c]);
        for (const auto& [stream, load] : most) shares_[c] += load;
      }
  }

  [[nodiscard]] std::vector<double> rates(const std::vector<SlowFlow>& flows) const {
    if (rule_ == RateRule::MaxMin) return slow_max_min(capacities_, flows);
    std::vector<double> rates(flows.size(), kNever);
    for (std::size_t f = 0; f < flows.size(); ++f)
      for (std::size_t c = 0; c < capacities_.size(); ++c)
        if (flows[f].cost[c] > 0) rates[f] = std::min(rates[f], flows[f].weight * capacities_[c] / shares_[c]);
    return rates;
  }

  void begin_step(EngineQueue& queue) {
    const Step& step = queue.steps[queue.at];
    queue.left = step.bytes > 0 ? step.bytes : step.time;
    queue.waiting = step.first;
    if (step.first) queue.since = now_;
  }

  void end_step(EngineQueue& queue) {
    const Step& step = queue.steps[queue.at];
    if (step.last) {
      (step.kernel ? run_.times[step.stream].kernel_end : run_.times[step.stream].transfer_end) = now_;
      for (const Lock& lock : locks_of(step)) busy_.erase(lock);
    }
    if (++queue.at < queue.steps.size()) begin_step(queue);
  }

  /// Gates, ends of steps and starts of commands at this instant, until nothing more happens in it.
  void settle() {
    for (bool changed = true; changed;) {
      changed = false;
      for (EngineQueue& queue : queues_) {
        if (!queue.arrived && queue.gate <= now_ * (1 + 1e-12)) {
          queue.arrived = changed = true;
          begin_step(queue);
        }
        while (running(queue) && queue.left <= 0) {
          end_step(queue);
          changed = true;
        }
      }
      if (!changed) changed = start_next();
    }
  }

  /// Of all that wait and could start, the one that came first; ties by the order of the file.
  bool start_next() {
    EngineQueue* best = nullptr;
    for (EngineQueue& queue : queues_) {
      if (!queue.arrived || queue.at == queue.steps.size() || !queue.waiting) continue;
      const auto locks = locks_of(queue.steps[queue.at]);
      if (std::any_of(locks.begin(), locks.end(), [&](const Lock& lock) { return busy_.contains(lock); })) continue;
      if (best == nullptr || queue.since < best->since) best = &queue;
    }
    if (best == nullptr) return false;
    const Step& step = best->steps[best->at];
    best->waiting = false;
    (step.kernel ? run_.times[step.stream].kernel_start : run_.times[step.stream].transfer_start) = now_;
    for (const Lock& lock : locks_of(step)) busy_.insert(lock);
    return true;
  }

  [[nodiscard]] static bool running(const EngineQueue& queue) {
    return queue.arrived && queue.at < queue.steps.size() && !queue.waiting;
  }

  bool advance() {
    settle();
    std::vector<SlowFlow> flows;
    for (const EngineQueue& queue : queues_)
      if (running(queue) && queue.steps[queue.at].bytes > 0) flows.push_back(queue.steps[queue.at].flow);
    const std::vector<double> flow_rates = rates(flows);
    std::vector<double> speed(queues_.size(), 0);  // of `left`
    double next = kNever;
    std::size_t f = 0;
    for (std::size_t c = 0; c < queues_.size(); ++c) {
      const EngineQueue& queue = queues_[c];
      if (!queue.arrived) next = std::min(next, queue.gate);
      if (!running(queue)) continue;
      speed[c] = queue.steps[queue.at].bytes > 0 ? flow_rates[f++] : 1;
      next = std::min(next, now_ + queue.left / speed[c]);
    }
    if (next == kNever) return false;
    for (std::size_t c = 0; c < queues_.size(); ++c) {
      if (speed[c] == 0) continue;
      const double end = now_ + queues_[c].left / speed[c];
      queues_[c].left = end <= next * (1 + 1e-12) ? 0 : queues_[c].left - speed[c] * (next - now_);
    }
    now_ = next;
    return true;
  }

  const Topology& machine_;
  Basis basis_;
  const Batch& batch_;
  RateRule rule_;
  std::vector<double> capacities_;  // the last ones are what each stream has alone at most
  std::vector<double> shares_;
  std::vector<EngineQueue> queues_;
  std::set<Lock> busy_;
  double now_ = 0;
  SlowRun run_;
};

}  // namespace

SlowRun slow_forward(const Topology& machine, Basis basis, const Batch& batch, RateRule rule,
                     std::span<const double> gates) {
  return SlowSimulation(machine, basis, batch, rule).run(gates);
}

}  // namespace tutti::internal::test
