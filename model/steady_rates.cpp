#include "model/steady_rates.hpp"

namespace tutti {

StreamRates SteadyRates::find(const Topology& machine, Basis basis, StreamSet streams) {
  const auto positions = positions_of(streams);
  std::vector<std::uint32_t> kinds;
  bandwidth_.reset(machine, basis, {}, positions.size());
  const VertexId memory = machine.memories().front();
  for (const std::uint32_t position : positions) {
    const auto [gpu, direction] = HostStream::at(position);
    const VertexId device = machine.gpus()[gpu];
    kinds.push_back(bandwidth_.add_flow(direction == Direction::HostToDevice ? machine.way_kind(memory, device)
                                                                             : machine.way_kind(device, memory)));
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
