#include "model/steady_rates.hpp"

namespace tutti {

StreamRates SteadyRates::find(const Topology& machine, Basis basis, StreamSet streams) {
  const auto positions = positions_of(streams);
  std::vector<std::uint32_t> kinds;
  bandwidth_.reset(machine, basis, {}, positions.size());
  for (const std::uint32_t position : positions) {
    const auto [from, to] = ends_of(machine, HostStream::at(position));
    kinds.push_back(bandwidth_.add_flow(machine.way_kind(from, to)));
  }
  bandwidth_.finish();
  bandwidth_.restart();
  for (const std::uint32_t kind : kinds) bandwidth_.start(bandwidth_.group(kind));
  bandwidth_.solve();
  StreamRates result{streams, {}, bandwidth_.source()};
  for (const std::uint32_t kind : kinds) result.rates.push_back(bandwidth_.rate(bandwidth_.group(kind)).value);
  return result;
}

}  // namespace tutti
