#include "model/sharing/steady_rates.hpp"

namespace tutti::internal {

PortRates SteadyRates::find(const Topology& machine, Basis basis, PortSet streams) {
  const auto positions = positions_of(streams);
  std::vector<std::uint32_t> kinds;
  bandwidth_.reset(machine, basis, {}, positions.size());
  for (const std::uint32_t position : positions) {
    const auto [from, to] = ends_of(machine, CopyPort::at(position));
    kinds.push_back(bandwidth_.add_flow(machine.route_class(from, to)));
  }
  bandwidth_.finish();
  bandwidth_.restart();
  for (const std::uint32_t kind : kinds) bandwidth_.start(bandwidth_.group(kind));
  bandwidth_.solve();
  PortRates result{streams, {}, bandwidth_.source()};
  for (const std::uint32_t kind : kinds) result.rates.push_back(bandwidth_.rate(bandwidth_.group(kind)).value);
  return result;
}

}  // namespace tutti::internal
