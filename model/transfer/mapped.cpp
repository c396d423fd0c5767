#include "model/transfer/mapped.hpp"

namespace tutti::internal {

std::optional<RouteView> route_mapped(const Topology& machine, const Transfer& transfer) {
  const auto up = goes_up_pinned(machine, transfer);
  if (!up) return std::nullopt;
  auto route = one_engine_route(machine, transfer, *up, machine.mover(*up ? transfer.from : transfer.to));
  route.kind = *up ? CopyKind::MappedUp : CopyKind::MappedDown;
  return route;
}

}  // namespace tutti::internal
