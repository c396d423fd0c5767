#include "model/transfer/peer.hpp"

namespace tutti::internal {

std::optional<RouteView> route_peer(const Topology& machine, const Transfer& transfer) {
  if (!is_between_gpus(machine, transfer)) return std::nullopt;
  if (transfer.via || !machine.has_peer_access(transfer.from, transfer.to)) return std::nullopt;
  RouteView route;
  route.kind = CopyKind::Peer;
  route.first = transfer.route.empty() ? machine.route(transfer.from, transfer.to) : transfer.route;
  route.engines.fill(machine.peer_engine_out(transfer.from));
  route.end_engines = {machine.peer_engine_out(transfer.from), machine.peer_engine_in(transfer.to)};
  route.weight = machine.weights().peer;
  return route;
}

}  // namespace tutti::internal
