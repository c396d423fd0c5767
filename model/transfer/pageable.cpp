#include "model/transfer/pageable.hpp"

namespace tutti::internal {

std::optional<RouteView> route_pageable(const Topology& machine, const Transfer& transfer) {
  const auto up = goes_up(machine, transfer);
  if (!up || !has_pageable_end(machine, transfer)) return std::nullopt;
  auto route = gpu_engine_route(machine, transfer, *up);
  route.kind = *up ? CopyKind::PageableUp : CopyKind::PageableDown;
  return route;
}

}  // namespace tutti::internal
