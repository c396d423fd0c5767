#include "model/transfer/sm.hpp"

namespace tutti::internal {

std::optional<RouteView> route_sm(const Topology& machine, const Transfer& transfer) {
  const auto up = goes_up_pinned(machine, transfer);
  if (!up) return std::nullopt;
  auto route = one_engine_route(machine, transfer, *up, machine.mover(*up ? transfer.to : transfer.from));
  route.kind = *up ? CopyKind::SmUp : CopyKind::SmDown;
  return route;
}

}  // namespace tutti::internal
