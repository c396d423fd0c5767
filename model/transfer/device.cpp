#include "model/transfer/device.hpp"

namespace tutti::internal {

std::optional<RouteView> route_device(const Topology& machine, const Transfer& transfer) {
  const bool sends = machine.vertex(transfer.from).kind == VertexKind::Device;
  const bool receives = machine.vertex(transfer.to).kind == VertexKind::Device;
  if (sends == receives) return std::nullopt;
  return one_engine_route(machine, transfer, sends,
                          sends ? machine.engine_out(transfer.from) : machine.engine_in(transfer.to));
}

}  // namespace tutti::internal
