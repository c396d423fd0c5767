#include "apps/lab/learn/trace_rates.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "model/base/quantile.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kMostPorts = 64;
/// Smaller copies are mostly set-up: they say nothing of rates where larger ones are there.
constexpr std::int64_t kLargeCopy = 1 << 20, kSmallCopy = 64 << 10;
/// A copy is with these co-runners where it is for this share of its time.
constexpr double kNearlyAll = 0.98;
constexpr int kRounds = 25;

/// The position of a port's rate among those of the ports that are active.
std::size_t rank_of(ActivePorts active, std::size_t port) {
  return static_cast<std::size_t>(std::popcount(active & ((ActivePorts{1} << port) - 1)));
}

std::vector<RecordedPort> ports_of(const RecordedTrace& trace) {
  std::vector<RecordedPort> ports;
  for (const RecordedOperation& operation : trace.operations) {
    if (!is_copy(operation.kind)) continue;
    const RecordedPort port = port_of(operation);
    const auto at = std::ranges::lower_bound(ports, port);
    if ((at == ports.end() || *at != port) && ports.size() < kMostPorts) ports.insert(at, port);
  }
  return ports;
}

}  // namespace

/// Time that a copy spent beside the same active ports.
struct CopyStretch {
  std::uint32_t copy = 0, slot = 0;
  double time = 0;
};

struct SweptCopy {
  std::uint32_t place = 0;  // in the trace
  std::size_t port = 0;
  double bytes = 0, length = 0;
};

/// A port while certain ports are active.
struct RateSlot {
  ActivePorts active = 0;
  std::size_t port = 0;
};

/// Walks through starts and ends of all copies.
class CopySweep {
 public:
  CopySweep(const RecordedTrace& trace, std::vector<RecordedPort> all_ports)
      : ports(std::move(all_ports)), trace_(&trace), busy_(ports.size()) {}

  void run() {
    for (std::uint32_t i = 0; i < trace_->operations.size(); ++i) {
      const RecordedOperation& operation = trace_->operations[i];
      if (!is_copy(operation.kind)) continue;
      const RecordedPort port = port_of(operation);
      const auto known = std::ranges::lower_bound(ports, port);
      if (known == ports.end() || *known != port) continue;
      end_before(operation.start);
      pass(operation.start);
      begin(i, static_cast<std::size_t>(known - ports.begin()));
    }
    end_before(std::numeric_limits<std::int64_t>::max());
  }

  std::vector<RecordedPort> ports;
  std::vector<SweptCopy> copies;
  std::vector<CopyStretch> stretches;
  std::vector<RateSlot> slots;
  std::map<ActivePorts, double> time;
  std::size_t overlapping = 0;

 private:
  struct Active {
    std::uint32_t copy;
    std::int64_t end;
    std::size_t stretch;  // its last one
  };

  void begin(std::uint32_t place, std::size_t port) {
    const RecordedOperation& operation = trace_->operations[place];
    if (busy_[port]++ > 0) ++overlapping;
    active_ports_ |= ActivePorts{1} << port;
    active_.push_back({static_cast<std::uint32_t>(copies.size()), operation.end, ~std::size_t{0}});
    copies.push_back({place, port, static_cast<double>(operation.bytes), static_cast<double>(operation.length())});
  }
  void end_before(std::int64_t until) {
    while (!active_.empty()) {
      const auto first = std::ranges::min_element(active_, {}, &Active::end);
      if (first->end > until) return;
      pass(first->end);
      const std::size_t port = copies[first->copy].port;
      if (--busy_[port] == 0) active_ports_ &= ~(ActivePorts{1} << port);
      *first = active_.back();
      active_.pop_back();
    }
  }
  void pass(std::int64_t until) {
    const double passed = static_cast<double>(until - now_);
    now_ = until;
    if (active_.empty() || passed <= 0) return;
    time[active_ports_] += passed;
    for (Active& active : active_) {
      const std::uint32_t slot = slot_of(copies[active.copy].port);
      if (active.stretch != ~std::size_t{0} && stretches[active.stretch].slot == slot) {
        stretches[active.stretch].time += passed;
      } else {
        active.stretch = stretches.size();
        stretches.push_back({active.copy, slot, passed});
      }
    }
  }
  std::uint32_t slot_of(std::size_t port) {
    const auto [known, is_new] =
        slot_numbers_.try_emplace({active_ports_, port}, static_cast<std::uint32_t>(slots.size()));
    if (is_new) slots.push_back({active_ports_, port});
    return known->second;
  }

  const RecordedTrace* trace_;
  std::vector<int> busy_;
  std::vector<Active> active_;
  std::map<std::pair<ActivePorts, std::size_t>, std::uint32_t> slot_numbers_;
  ActivePorts active_ports_ = 0;
  std::int64_t now_ = 0;
};

namespace {

/// Usual time of small copies: what a copy takes beside its bytes.
std::vector<double> setup_of(const CopySweep& sweep) {
  std::vector<std::vector<double>> lengths(sweep.ports.size());
  std::vector<double> fastest(sweep.ports.size());
  for (const SweptCopy& copy : sweep.copies)
    if (copy.length > 0) fastest[copy.port] = std::max(fastest[copy.port], copy.bytes / copy.length);
  for (const SweptCopy& copy : sweep.copies)
    if (copy.bytes <= kSmallCopy && fastest[copy.port] > 0)
      lengths[copy.port].push_back(std::max(0.0, copy.length - copy.bytes / fastest[copy.port]));
  std::vector<double> setup;
  for (auto& seen : lengths) setup.push_back(median(std::move(seen)));
  return setup;
}

/// Multiplicative updates until the rates move the bytes of all copies: a stretch's part of a copy's fault is its part
/// of the time.
class RateFit {
 public:
  RateFit(const CopySweep& sweep, const std::vector<double>& setup, const std::vector<bool>& left_out)
      : sweep_(&sweep), setup_(&setup), rates_(sweep.slots.size()) {
    const auto counts = [&](const SweptCopy& copy) {
      return copy.length > 0 && (left_out.empty() || !left_out[copy.place]);
    };
    std::vector<bool> has_large(sweep.ports.size());
    for (const SweptCopy& copy : sweep.copies)
      if (counts(copy) && copy.bytes >= kLargeCopy) has_large[copy.port] = true;
    for (const SweptCopy& copy : sweep.copies)
      counts_.push_back(counts(copy) &&
                        (copy.bytes >= kLargeCopy || (copy.bytes > kSmallCopy && !has_large[copy.port])));
  }

  std::vector<SeenRate> run() {
    start();
    for (int round = 0; round < kRounds; ++round) improve();
    find_lowest();
    return rates_;
  }

 private:
  struct Sum {
    double above = 0, below = 0;
  };
  [[nodiscard]] double net_time(const SweptCopy& copy) const {
    return std::max(1.0, copy.length - (*setup_)[copy.port]);
  }

  void start() {
    std::vector<Sum> sums(rates_.size());
    for (const CopyStretch& stretch : sweep_->stretches) {
      if (!counts_[stretch.copy]) continue;
      const SweptCopy& copy = sweep_->copies[stretch.copy];
      sums[stretch.slot].above += copy.bytes / net_time(copy) * stretch.time;
      sums[stretch.slot].below += stretch.time;
    }
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (sums[i].below > 0) rates_[i].usual = sums[i].above / sums[i].below;
  }
  void improve() {
    std::vector<double> moved(sweep_->copies.size());
    for (const CopyStretch& stretch : sweep_->stretches) {
      if (!counts_[stretch.copy]) continue;
      const SweptCopy& copy = sweep_->copies[stretch.copy];
      moved[stretch.copy] += rates_[stretch.slot].usual * stretch.time * net_time(copy) / copy.length;
    }
    std::vector<Sum> sums(rates_.size());
    for (const CopyStretch& stretch : sweep_->stretches) {
      if (!counts_[stretch.copy] || moved[stretch.copy] <= 0) continue;
      const SweptCopy& copy = sweep_->copies[stretch.copy];
      // A copy that is mostly in this stretch says more of it than one that is there for a moment.
      const double weight = stretch.time * stretch.time / copy.length;
      sums[stretch.slot].above += weight * copy.bytes / moved[stretch.copy];
      sums[stretch.slot].below += weight;
    }
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (sums[i].below > 0) rates_[i].usual *= sums[i].above / sums[i].below;
  }
  void find_lowest() {
    for (const CopyStretch& stretch : sweep_->stretches) {
      const SweptCopy& copy = sweep_->copies[stretch.copy];
      if (!counts_[stretch.copy] || copy.bytes < kLargeCopy || stretch.time < kNearlyAll * copy.length) continue;
      double& lowest = rates_[stretch.slot].lowest;
      const double of_copy = copy.bytes / net_time(copy);
      lowest = lowest > 0 ? std::min(lowest, of_copy) : of_copy;
    }
  }

  const CopySweep* sweep_;
  const std::vector<double>* setup_;
  std::vector<SeenRate> rates_;  // [slots]
  std::vector<bool> counts_;     // [copies]
};

/// What no copy alone has exceeded beside its bytes at the lowest rate.
std::vector<double> most_setup_of(const CopySweep& sweep, const TraceRates& rates) {
  std::vector<double> most = rates.setup;
  for (const CopyStretch& stretch : sweep.stretches) {
    const SweptCopy& copy = sweep.copies[stretch.copy];
    const auto alone = rates.alone(copy.port);
    if (!alone) most[copy.port] = std::max(most[copy.port], copy.bytes <= kSmallCopy ? copy.length : 0);
    if (!alone || stretch.time < copy.length || sweep.slots[stretch.slot].active != ActivePorts{1} << copy.port)
      continue;
    const double rate = alone->lowest > 0 ? alone->lowest : alone->usual;
    most[copy.port] = std::max(most[copy.port], copy.length - copy.bytes / rate);
  }
  return most;
}

}  // namespace

RecordedPort port_of(const RecordedOperation& copy) { return {copy.kind, copy.gpu, copy.to_gpu, copy.pageable}; }

std::optional<SeenRate> TraceRates::alone(std::size_t port) const {
  const auto found = together.find(ActivePorts{1} << port);
  if (found == together.end() || found->second.front().usual <= 0) return std::nullopt;
  return found->second.front();
}

double TraceRates::highest(std::size_t port) const {
  double most = 0;
  for (const auto& [active, rates] : together)
    if ((active >> port & 1) != 0) most = std::max(most, rates[rank_of(active, port)].usual);
  return most;
}

struct RateFinder::Seen {
  CopySweep sweep;
  std::vector<double> setup;
};

RateFinder::RateFinder(const RecordedTrace& trace) {
  Seen seen{CopySweep(trace, ports_of(trace)), {}};
  seen.sweep.run();
  seen.setup = setup_of(seen.sweep);
  seen_ = std::make_unique<const Seen>(std::move(seen));
}

RateFinder::~RateFinder() = default;

TraceRates RateFinder::find(const std::vector<bool>& left_out) const {
  const CopySweep& sweep = seen_->sweep;
  TraceRates rates;
  rates.ports = sweep.ports;
  rates.time = sweep.time;
  rates.setup = seen_->setup;
  rates.overlapping = sweep.overlapping;
  for (const auto& [active, time] : sweep.time)
    rates.together[active].resize(static_cast<std::size_t>(std::popcount(active)));
  const std::vector<SeenRate> found = RateFit(sweep, rates.setup, left_out).run();
  for (std::size_t i = 0; i < found.size(); ++i)
    rates.together[sweep.slots[i].active][rank_of(sweep.slots[i].active, sweep.slots[i].port)] = found[i];
  rates.most_setup = most_setup_of(sweep, rates);
  return rates;
}

}  // namespace tutti::internal
