#include "model/transfer/device.hpp"

namespace tutti::internal {

std::optional<RouteView> route_device(const Topology& machine, const Transfer& transfer) {
  const bool sends = machine.vertex(transfer.from).kind == VertexKind::Device;
  const bool receives = machine.vertex(transfer.to).kind == VertexKind::Device;
  if (sends == receives) return std::nullopt;
  RouteView route;
  route.kind = sends ? CopyKind::Up : CopyKind::Down;
  route.first = transfer.route.empty() ? machine.route(transfer.from, transfer.to) : transfer.route;
  route.engines.fill(sends ? machine.engine_out(transfer.from) : machine.engine_in(transfer.to));
  route.end_engines = route.engines;
  route.weight = sends ? machine.weights().h2d : machine.weights().d2h;
  return route;
}

}  // namespace tutti::internal
