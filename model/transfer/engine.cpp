#include "model/transfer/engine.hpp"

namespace tutti::internal {

std::optional<RouteView> route_engine(const Topology& machine, const Transfer& transfer) {
  const auto up = goes_up_pinned(machine, transfer);
  if (!up) return std::nullopt;
  auto route = gpu_engine_route(machine, transfer, *up);
  if (transfer.is_strided()) route.kind = *up ? CopyKind::RowsUp : CopyKind::RowsDown;
  return route;
}

}  // namespace tutti::internal
