#include "model/transfer/pageable.hpp"

#include "model/transfer/direct.hpp"

namespace tutti::internal {

std::optional<RouteView> route_pageable(const Topology& machine, const Transfer& transfer) {
  if (!machine.vertex(transfer.from).pageable && !machine.vertex(transfer.to).pageable) return std::nullopt;
  auto route = route_direct(machine, transfer);
  if (route) route->kind = route->kind == CopyKind::Up ? CopyKind::PageableUp : CopyKind::PageableDown;
  return route;
}

}  // namespace tutti::internal
