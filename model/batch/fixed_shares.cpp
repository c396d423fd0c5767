#include "model/batch/fixed_shares.hpp"

#include <algorithm>
#include <limits>

#include "model/machine/ports.hpp"
#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {
namespace {

/// Calls `visit` with each capacity and the cost of a byte there, link by link.
template <class Visit>
void for_uses(const Topology& machine, std::span<const LinkId> links, Visit visit) {
  for (const LinkId link : links)
    for (const CapacityUse& use : machine.uses(link)) visit(use.capacity.index(), use.cost);
}

}  // namespace

void FixedShares::load(const Topology& machine, Basis basis, const Batch& batch) {
  const auto capacities = machine.capacities(basis);
  const auto for_transfers = [&](auto visit) {
    for (std::size_t s = 0; s < batch.streams().size(); ++s)
      if (batch.work()[s].bytes > 0) visit(s, find_route(machine, *batch.streams()[s].transfer));
  };
  load_.assign(capacities.size(), 0);
  for_transfers([&](std::size_t, const RouteView& route) {
    const auto add = [&](std::size_t capacity, double cost) { load_[capacity] += route.weight * cost; };
    for_uses(machine, route.first, add);
    for_uses(machine, route.second, add);
  });
  rates_.assign(batch.streams().size(), {});
  for_transfers([&](std::size_t s, const RouteView& route) {
    double lambda = std::numeric_limits<double>::infinity();
    const auto limit = [&](std::size_t capacity, double) {
      lambda = std::min(lambda, capacities[capacity] / load_[capacity]);
    };
    for_uses(machine, route.first, limit);
    rates_[s].lead = lambda * route.weight;
    for_uses(machine, route.second, limit);
    rates_[s].data = lambda * route.weight;
    const RouteClass& route_class = batch.route_class(batch.work()[s].route_class);
    if (route_class.capped) rates_[s].data = std::min(rates_[s].data, route_class.alone.at(basis).value);
  });
  if (basis == Basis::Nominal && machine.table() != nullptr) hold_to_table(machine, batch);
}

void FixedShares::hold_to_table(const Topology& machine, const Batch& batch) {
  const auto port_of = [&](std::size_t s) {
    const StreamWork& work = batch.work()[s];
    return work.bytes > 0 ? batch.route_class(work.route_class).port : std::nullopt;
  };
  PortSet all;
  for (std::size_t s = 0; s < rates_.size(); ++s)
    if (const auto port = port_of(s)) all.insert(*port);
  if (all.empty()) return;
  find_least(machine, all);
  for (std::size_t s = 0; s < rates_.size(); ++s)
    if (const auto port = port_of(s)) rates_[s].data = std::min(rates_[s].data, least_[all.rank(*port)]);
}

void FixedShares::find_least(const Topology& machine, const PortSet& all) {
  const MeasuredTable& table = *machine.table();
  if (of_machine_ && of_machine_->table() == &table && of_ports_ == all) return;
  of_machine_ = machine;
  of_ports_ = all;
  least_.assign(all.size(), std::numeric_limits<double>::infinity());
  for (const auto& [ports, row] : table.combinations()) {
    if (!all.includes(ports) || !can_be_active(machine, ports)) continue;
    for (const PortId port : ports) {
      double& least = least_[all.rank(port)];
      least = std::min(least, table.rate(row, ports, port).value);
    }
  }
}

}  // namespace tutti::internal
