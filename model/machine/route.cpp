#include "model/machine/route.hpp"

namespace tutti::internal {

std::pair<VertexId, VertexId> ends_of(const Topology& machine, CopyPort stream) {
  const VertexId memory = machine.memories().front();
  const VertexId gpu = machine.gpus()[stream.gpu];
  return stream.direction == Direction::HostToDevice ? std::pair(memory, gpu) : std::pair(gpu, memory);
}

PortSet waiting_streams(const Topology& machine, PortSet streams) {
  PortSet waiting = 0;
  for (std::uint32_t gpu = 0; gpu < machine.gpus().size(); ++gpu)
    if (state_of(streams, gpu) == 3 && machine.vertex(machine.gpus()[gpu]).copy_engines == 1)
      waiting |= PortSet{1} << (2 * gpu);
  return waiting;
}

bool has_routes(const Topology& machine, PortSet streams) {
  for (const std::uint32_t position : positions_of(streams)) {
    const CopyPort stream = CopyPort::at(position);
    if (machine.memories().empty() || stream.gpu >= machine.gpus().size()) return false;
    const auto [from, to] = ends_of(machine, stream);
    if (machine.route(from, to).empty()) return false;
  }
  return true;
}

}  // namespace tutti::internal
