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
  RouteView route;
  const bool into_gpu = machine.vertex(transfer.to).kind == VertexKind::Gpu;
  const bool out_of_gpu = machine.vertex(transfer.from).kind == VertexKind::Gpu;
  const EngineId in = machine.engine_in(into_gpu ? transfer.to : transfer.from);
  const EngineId out = machine.engine_out(out_of_gpu ? transfer.from : transfer.to);
  if (into_gpu && out_of_gpu) {
    route.engines = {out, in};
    route.weight = machine.weights().peer;
    if (transfer.via || !machine.has_peer_access(transfer.from, transfer.to)) {
      route_staged(machine, transfer, route);
      return route;
    }
    route.path = CopyPath::Peer;
  } else {
    route.engines = into_gpu ? std::array{in, in} : std::array{out, out};
    route.weight = into_gpu ? machine.weights().h2d : machine.weights().d2h;
  }
  route.first =
      transfer.route.empty() ? machine.route(transfer.from, transfer.to) : std::span<const LinkId>(transfer.route);
  return route;
}

}  // namespace tutti
