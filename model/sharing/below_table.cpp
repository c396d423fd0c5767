#include "model/sharing/below_table.hpp"

#include <algorithm>
#include <limits>

#include "model/base/digits.hpp"
#include "model/machine/ports.hpp"
#include "model/sharing/lower_capacity.hpp"
#include "model/sharing/steady_rates.hpp"

namespace tutti::internal {

BelowTable::BelowTable(const Topology& machine) {
  const MeasuredTable& table = *machine.table();
  for (const PortId port : table.named())
    if (has_route(machine, port)) ports_.push_back(port);
  for (std::size_t place = 0; place < table.combinations().size(); ++place)
    if (can_be_active(machine, table.combinations()[place].ports)) possible_.push_back(place);
}

Topology BelowTable::lower(Topology machine) {
  constexpr int kGentleRounds = 200;
  for (int round = 0;; ++round) {
    const auto lowered = lower_once(machine, round < kGentleRounds);
    if (!lowered) return machine;
    machine = machine.with_guaranteed(*lowered);
  }
}

std::optional<std::vector<double>> BelowTable::lower_once(const Topology& machine, bool gently) {
  load_ports(bandwidth_, machine, Basis::Guaranteed, ports_, own_classes_, kinds_);
  const auto values = machine.capacities(Basis::Guaranteed);
  reasons_.resize(values.size());
  found_.clear();
  fewest_ = std::numeric_limits<std::size_t>::max();
  PortSet active;
  const auto toggle = [&](const PortSet& ports, auto change) {
    for (const PortId port : ports) (bandwidth_.*change)(group_at(port));
  };
  for (const std::size_t place : possible_) {
    const MeasuredTable::Known& known = machine.table()->combinations()[place];
    toggle(active - known.ports, &BandwidthModel::stop);
    toggle(known.ports - active, &BandwidthModel::start);
    active = known.ports;
    look_at(machine, known, gently);
  }
  if (found_.empty()) return std::nullopt;
  std::vector<double> lowered(values.begin(), values.end());
  for (const auto& [value, reason] : found_) {
    double& place = lowered[reason.capacity.index()];
    if (value >= place) continue;
    place = value;
    reasons_[reason.capacity.index()] = reason;
  }
  return lowered;
}

std::uint32_t BelowTable::group_at(PortId port) const {
  const auto place = std::lower_bound(ports_.begin(), ports_.end(), port) - ports_.begin();
  return bandwidth_.group(kinds_[static_cast<std::size_t>(place)]);
}

/// Combinations of the fewest ports come first: their changes may suffice for larger ones.
void BelowTable::look_at(const Topology& machine, const MeasuredTable::Known& known, bool gently) {
  constexpr double kTolerance = 1e-10;  // of sums that are added up in another order
  const MeasuredTable& table = *machine.table();
  const std::size_t count = known.ports.size();
  if (count > fewest_) return;
  bandwidth_.solve();
  const auto graph = [&](PortId port) { return bandwidth_.rate(group_at(port)).value; };
  const auto most = [&](PortId port) { return table.rate(known.row, known.ports, port).value; };
  const auto too_fast = [&](PortId port) { return graph(port) > most(port) * (1 + kTolerance); };
  if (std::none_of(known.ports.begin(), known.ports.end(), too_fast)) return;
  if (count < fewest_) found_.clear();
  fewest_ = count;
  const std::vector<PortId> ports = list_of(known.ports);
  std::vector<double> rates;
  for (const PortId port : ports) rates.push_back(graph(port));
  const auto load = loads_of(machine, links_of(machine, ports), rates);
  for (const PortId port : ports) {
    if (!too_fast(port)) continue;
    const Links route = links_at(machine, port);
    const LowerCapacity step =
        gently ? least_loss(machine, route, load, graph(port) - most(port)) : hold_alone(machine, route, most(port));
    found_.emplace_back(down_to_digits(step.value, kFloorDigits),
                        Reason{CapacityId(step.capacity), known.ports, port, most(port), graph(port)});
  }
}

std::vector<BelowTable::Reason> BelowTable::reasons() const {
  std::vector<Reason> reasons;
  for (const auto& reason : reasons_)
    if (reason) reasons.push_back(*reason);
  return reasons;
}

}  // namespace tutti::internal
