#include "model/transfer/staged.hpp"

#include <limits>

namespace tutti::internal {

std::optional<RouteView> route_staged(const Topology& machine, const Transfer& transfer) {
  if (!is_between_gpus(machine, transfer)) return std::nullopt;
  RouteView route;
  route.kind = CopyKind::Staged;
  route.engines = route.end_engines = {machine.engine_out(transfer.from), machine.engine_in(transfer.to)};
  route.weight = machine.weights().peer;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const VertexId memory : machine.memories()) {
    if (machine.vertex(memory).pageable || (transfer.via && *transfer.via != memory)) continue;
    const auto in = machine.route(transfer.from, memory);
    const auto out = machine.route(memory, transfer.to);
    if (in.empty() || out.empty() || in.size() + out.size() >= fewest) continue;
    fewest = in.size() + out.size();
    route.first = in;
    route.second = out;
    route.via = memory;
  }
  return route;
}

}  // namespace tutti::internal
