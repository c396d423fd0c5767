#include "model/transfer/transfer_method.hpp"

#include "model/base/expects.hpp"
#include "model/transfer/device.hpp"
#include "model/transfer/direct.hpp"
#include "model/transfer/pageable.hpp"
#include "model/transfer/peer.hpp"
#include "model/transfer/staged.hpp"

namespace tutti::internal {
namespace {

struct MethodRow {
  TransferMethod method;
  std::optional<RouteView> (*route)(const Topology&, const Transfer&);  ///< nothing: not for such a transfer
};

constexpr std::array kMethods{
    MethodRow{{.name = "device", .of_device = true}, route_device},
    MethodRow{{.name = "pageable", .pageable = true}, route_pageable},
    MethodRow{{.name = "direct"}, route_direct},
    MethodRow{{.name = "peer", .peer_traffic = true}, route_peer},
    MethodRow{{.name = "staged", .chunked = true}, route_staged},
};

}  // namespace

RouteView one_engine_route(const Topology& machine, const Transfer& transfer, bool up, EngineId engine) {
  RouteView route;
  route.kind = up ? CopyKind::Up : CopyKind::Down;
  route.first = transfer.route.empty() ? machine.route(transfer.from, transfer.to) : transfer.route;
  route.engines.fill(engine);
  route.end_engines = route.engines;
  route.weight = up ? machine.weights().h2d : machine.weights().d2h;
  return route;
}

RouteView find_route(const Topology& machine, const Transfer& transfer) {
  for (const MethodRow& row : kMethods) {
    auto route = row.route(machine, transfer);
    if (!route) continue;
    route->method = row.method;
    return *route;
  }
  TUTTI_EXPECTS(false, "one end of a transfer is a GPU or a device, the other a memory or another GPU");
}

}  // namespace tutti::internal
