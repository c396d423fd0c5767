#include "model/batch/fixed_shares.hpp"

#include <algorithm>
#include <limits>

#include "model/machine/ports.hpp"
#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {
namespace {

/// A stream's transfer over the capacities of its links.
class Crossing {
 public:
  Crossing(const Topology& machine, Basis basis, const Batch& batch, std::size_t stream)
      : machine_(machine),
        basis_(basis),
        route_(find_route(machine, *batch.streams()[stream].transfer)),
        class_(batch.route_class(batch.work()[stream].route_class)) {}

  [[nodiscard]] double weight() const { return class_.weight; }
  [[nodiscard]] std::span<const LinkId> first() const { return route_.first; }
  [[nodiscard]] std::span<const LinkId> second() const { return route_.second; }

  /// Calls `visit` with each capacity and the cost of a byte there, link by link.
  template <class Visit>
  void for_uses(std::span<const LinkId> links, Visit visit) const {
    for (const LinkId link : links)
      for (const CapacityUse& use : machine_.uses(link)) visit(use.capacity.index(), use.cost * load_at(use.capacity));
  }

 private:
  /// What its class takes of a capacity for what its links take. 1 of links that its class leaves out.
  [[nodiscard]] double load_at(CapacityId capacity) const {
    const auto& uses = class_.uses_at(basis_);
    const auto found = std::ranges::find(uses, capacity, &CapacityUse::capacity);
    if (found == uses.end()) return 1;
    double of_links = 0;
    for (const auto links : {route_.first, route_.second})
      for (const LinkId link : links)
        for (const CapacityUse& use : machine_.uses(link)) of_links += use.capacity == capacity ? use.cost : 0;
    return found->cost / of_links;
  }

  const Topology& machine_;
  Basis basis_;
  RouteView route_;
  const RouteClass& class_;
};

/// The copy port of a stream, where it has one and bytes.
std::optional<PortId> port_of(const Batch& batch, std::size_t stream) {
  const StreamWork& work = batch.work()[stream];
  return work.bytes > 0 ? batch.route_class(work.route_class).port : std::nullopt;
}

}  // namespace

void add_load(const Topology& machine, Basis basis, const Batch& batch, std::vector<double>& load) {
  for (std::size_t s = 0; s < batch.streams().size(); ++s) {
    if (batch.work()[s].bytes <= 0) continue;
    const Crossing crossing(machine, basis, batch, s);
    const auto add = [&](std::size_t capacity, double cost) { load[capacity] += crossing.weight() * cost; };
    crossing.for_uses(crossing.first(), add);
    crossing.for_uses(crossing.second(), add);
  }
}

PortSet ports_of(const Batch& batch) {
  PortSet ports;
  for (std::size_t s = 0; s < batch.streams().size(); ++s)
    if (const auto port = port_of(batch, s)) ports.insert(*port);
  return ports;
}

void FixedShares::load(const Topology& machine, Basis basis, const Batch& batch, const ApplicationLoad& application) {
  const auto capacities = machine.capacities(basis);
  load_.assign(capacities.size(), 0);
  if (application.empty()) {
    add_load(machine, basis, batch, load_);
  } else {
    std::ranges::copy(application.capacities(basis), load_.begin());
  }
  rates_.assign(batch.streams().size(), {});
  for (std::size_t s = 0; s < batch.streams().size(); ++s) {
    if (batch.work()[s].bytes <= 0) continue;
    const Crossing crossing(machine, basis, batch, s);
    double lambda = std::numeric_limits<double>::infinity();
    const auto limit = [&](std::size_t capacity, double cost) {  // a transfer that its application lacks is alone
      lambda = std::min(lambda, capacities[capacity] / std::max(load_[capacity], crossing.weight() * cost));
    };
    crossing.for_uses(crossing.first(), limit);
    rates_[s].fill = lambda * crossing.weight();
    crossing.for_uses(crossing.second(), limit);
    rates_[s].data = lambda * crossing.weight();
    const RouteClass& route_class = batch.route_class(batch.work()[s].route_class);
    if (route_class.capped) rates_[s].data = std::min(rates_[s].data, route_class.alone.at(basis).value);
  }
  if (basis == Basis::Nominal && machine.table() != nullptr)
    hold_to_table(machine, batch, application.empty() ? ports_of(batch) : application.ports() | ports_of(batch));
}

void FixedShares::hold_to_table(const Topology& machine, const Batch& batch, const PortSet& all) {
  if (all.empty()) return;
  find_least(machine, all);
  for (std::size_t s = 0; s < rates_.size(); ++s)
    if (const auto port = port_of(batch, s)) rates_[s].data = std::min(rates_[s].data, least_[all.rank(*port)]);
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
