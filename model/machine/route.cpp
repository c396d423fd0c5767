#include "model/machine/route.hpp"

#include <limits>

namespace tutti::internal {
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
  const bool from_gpu = machine.vertex(transfer.from).kind == VertexKind::Gpu;
  const bool to_gpu = machine.vertex(transfer.to).kind == VertexKind::Gpu;
  const SharingWeights& weights = machine.weights();
  RouteView route;
  route.engines = {from_gpu ? machine.engine_out(transfer.from) : machine.engine_in(transfer.to),
                   to_gpu ? machine.engine_in(transfer.to) : machine.engine_out(transfer.from)};
  route.weight = from_gpu && to_gpu ? weights.peer : to_gpu ? weights.h2d : weights.d2h;
  if (from_gpu && to_gpu) {
    if (transfer.via || !machine.has_peer_access(transfer.from, transfer.to)) {
      route_staged(machine, transfer, route);
      return route;
    }
    route.path = CopyPath::Peer;
    route.engines.fill(machine.peer_engine_out(transfer.from));  // of the GPU that issues it
  }
  route.first = transfer.route.empty() ? machine.route(transfer.from, transfer.to) : transfer.route;
  return route;
}

CopyKind class_of(const Topology& machine, const Transfer& transfer, CopyPath path) {
  if (path == CopyPath::Peer) return CopyKind::Peer;
  if (path == CopyPath::Staged) return CopyKind::Staged;
  return machine.vertex(transfer.to).kind == VertexKind::Gpu ? CopyKind::Up : CopyKind::Down;
}

}  // namespace tutti::internal
