#include "model/steady_rates.hpp"

namespace tutti {

std::pair<VertexId, VertexId> ends_of(const Topology& machine, HostStream stream) {
  const VertexId memory = machine.memories().front();
  const VertexId gpu = machine.gpus()[stream.gpu];
  return stream.direction == Direction::HostToDevice ? std::pair(memory, gpu) : std::pair(gpu, memory);
}

bool has_ways(const Topology& machine, StreamSet streams) {
  for (const std::uint32_t position : positions_of(streams)) {
    const HostStream stream = HostStream::at(position);
    if (machine.memories().empty() || stream.gpu >= machine.gpus().size()) return false;
    const auto [from, to] = ends_of(machine, stream);
    if (machine.route(from, to).empty()) return false;
  }
  return true;
}

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
