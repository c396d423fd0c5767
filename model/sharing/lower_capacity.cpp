#include "model/sharing/lower_capacity.hpp"

#include <algorithm>

#include "model/machine/ports.hpp"

namespace tutti::internal {
namespace {

template <class Visit>
void each_use_of(const Topology& machine, Links links, Visit visit) {
  for (const LinkId link : links)
    for (const CapacityUse& use : machine.uses(link)) visit(use);
}

}  // namespace

std::vector<Links> links_of(const Topology& machine, std::span<const PortId> ports) {
  std::vector<Links> links;
  for (const PortId port : ports) links.push_back(links_at(machine, port));
  return links;
}

std::vector<double> loads_of(const Topology& machine, std::span<const Links> links, std::span<const double> rates) {
  std::vector<double> load(machine.capacities(Basis::Guaranteed).size(), 0);
  for (std::size_t i = 0; i < links.size(); ++i)
    each_use_of(machine, links[i], [&](const CapacityUse& use) { load[use.capacity.index()] += use.cost * rates[i]; });
  return load;
}

LowerCapacity least_loss(const Topology& machine, Links links, std::span<const double> load, double too_much) {
  const auto values = machine.capacities(Basis::Guaranteed);
  double least = 1;  // part that a capacity must lose, to hold the stream back alone
  LowerCapacity chosen{0, values[0]};
  each_use_of(machine, links, [&](const CapacityUse& use) {
    const std::size_t c = use.capacity.index();
    const double value = load[c] - use.cost * too_much;
    if (1 - value / values[c] >= least) return;
    least = 1 - value / values[c];
    chosen = {c, value};
  });
  return chosen;
}

LowerCapacity hold_alone(const Topology& machine, Links links, double most) {
  const auto values = machine.capacities(Basis::Guaranteed);
  const LinkId slowest = *std::min_element(links.begin(), links.end(),
                                           [&](LinkId a, LinkId b) { return values[a.index()] < values[b.index()]; });
  return {slowest.index(), most};
}

}  // namespace tutti::internal
