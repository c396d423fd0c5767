#include "model/transfer/direct.hpp"

namespace tutti::internal {

std::optional<RouteView> route_direct(const Topology& machine, const Transfer& transfer) {
  const bool up = machine.vertex(transfer.to).kind == VertexKind::Gpu;
  const bool down = machine.vertex(transfer.from).kind == VertexKind::Gpu;
  if (up == down) return std::nullopt;
  RouteView route;
  route.kind = up ? CopyKind::Up : CopyKind::Down;
  route.first = transfer.route.empty() ? machine.route(transfer.from, transfer.to) : transfer.route;
  route.engines.fill(up ? machine.engine_in(transfer.to) : machine.engine_out(transfer.from));
  route.end_engines = route.engines;
  route.weight = up ? machine.weights().h2d : machine.weights().d2h;
  return route;
}

}  // namespace tutti::internal
