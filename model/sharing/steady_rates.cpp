#include "model/sharing/steady_rates.hpp"

#include <algorithm>

namespace tutti::internal {

void load_ports(BandwidthModel& bandwidth, const Topology& machine, Basis basis, std::span<const PortId> ports,
                std::vector<RouteClass>& own_classes, std::vector<std::uint32_t>& kinds) {
  const std::vector<LinkId> met = last_links_between_gpus(machine, ports);
  own_classes.clear();
  if (!met.empty())
    for (const PortId port : ports) own_classes.push_back(class_at(machine, port, met));
  bandwidth.reset(machine, basis, own_classes, ports.size());
  kinds.clear();
  const std::size_t first_own = machine.route_classes().size();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto [from, to] = ends_of(machine, ports[i]);
    kinds.push_back(
        bandwidth.add_flow(met.empty() ? machine.route_class(from, to) : static_cast<std::uint32_t>(first_own + i)));
  }
  bandwidth.finish();
  bandwidth.restart();
}

std::vector<double> SteadyRates::find(const Topology& machine, Basis basis, std::span<const PortId> ports) {
  load_ports(bandwidth_, machine, basis, ports, own_classes_, kinds_);
  for (const std::uint32_t kind : kinds_) bandwidth_.start(bandwidth_.group(kind));
  bandwidth_.solve();
  std::vector<double> rates;
  rates.reserve(kinds_.size());
  for (const std::uint32_t kind : kinds_) rates.push_back(bandwidth_.rate(bandwidth_.group(kind)).value);
  return rates;
}

PortRates SteadyRates::find(const Topology& machine, Basis basis, const PortSet& ports) {
  PortRates result{ports, find(machine, basis, list_of(ports)), RateSource::Graph};
  const auto by_graph = [&](std::uint32_t kind) {
    return bandwidth_.source(bandwidth_.group(kind)) == RateSource::Graph;
  };
  if (!kinds_.empty() && std::none_of(kinds_.begin(), kinds_.end(), by_graph))
    result.source = bandwidth_.source(bandwidth_.group(kinds_.front()));
  return result;
}

}  // namespace tutti::internal
