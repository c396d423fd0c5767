#include "model/transfer/direct.hpp"

namespace tutti::internal {

std::optional<RouteView> route_direct(const Topology& machine, const Transfer& transfer) {
  const bool up = machine.vertex(transfer.to).kind == VertexKind::Gpu;
  const bool down = machine.vertex(transfer.from).kind == VertexKind::Gpu;
  if (up == down) return std::nullopt;
  return one_engine_route(machine, transfer, up,
                          up ? machine.engine_in(transfer.to) : machine.engine_out(transfer.from));
}

}  // namespace tutti::internal
