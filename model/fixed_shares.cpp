#include "model/fixed_shares.hpp"

#include <algorithm>
#include <limits>

#include "model/route.hpp"

namespace tutti {
namespace {

/// Calls `visit` with what a byte takes over each of the links of each capacity, one after the other.
template <class Visit>
void for_uses(const Topology& machine, std::span<const LinkId> links, Visit visit) {
  for (const LinkId link : links)
    for (const CapacityUse& use : machine.uses(link)) visit(use.capacity.index(), use.cost);
}

}  // namespace

void FixedShares::load(const Topology& machine, Basis basis, const BatchOperation& batch) {
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
  });
}

}  // namespace tutti
