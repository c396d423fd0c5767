#include "model/transfer/inline.hpp"

namespace tutti::internal {

std::optional<RouteView> route_inline(const Topology& machine, const Transfer& transfer) {
  const auto up = goes_up(machine, transfer);
  if (!up || !*up || transfer.size > kMostInline) return std::nullopt;
  auto route = one_engine_route(machine, transfer, true, machine.mover(transfer.to));
  route.kind = CopyKind::InlineUp;
  return route;
}

}  // namespace tutti::internal
