#include "model/route.hpp"

#include <limits>

namespace tutti {
namespace {

void route_staged(const Topology& machine, const Transfer& transfer, RouteView& route) {
  route.path = CopyPath::Staged;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const VertexId memory : machine.memories()) {
    if (transfer.via && *transfer.via != memory) continue;
    const auto in = machine.route(transfer.from, memory);
    const auto out = machine.route(memory, transfer.to);
    if (in.empty() || out.empty() || in.size() + out.size() >= fewest) continue;
    fewest = in.size() + out.size();
    route.first = in;
    route.second = out;
    route.via = memory;
  }
}

}  // namespace

std::string_view to_string(CopyPath path) {
  switch (path) {
    case CopyPath::Direct: return "direct";
    case CopyPath::Peer: return "peer";
    case CopyPath::Staged: return "staged";
  }
  return "";
}

RouteView find_route(const Topology& machine, const Transfer& transfer) {
  const std::span<const LinkId> own(transfer.route);
  RouteView route;
  if (const DirectWay* way = machine.direct_ways().find(transfer.from, transfer.to)) {
    route.first = own.empty() ? way->links : own;
    route.engines = {way->engine, way->engine};
    route.weight = way->weight;
    return route;
  }
  route.engines = {machine.engine_out(transfer.from), machine.engine_in(transfer.to)};
  route.weight = machine.weights().peer;
  if (transfer.via || !machine.has_peer_access(transfer.from, transfer.to)) {
    route_staged(machine, transfer, route);
    return route;
  }
  route.path = CopyPath::Peer;
  route.first = own.empty() ? machine.route(transfer.from, transfer.to) : own;
  return route;
}

}  // namespace tutti
