#include "model/transfer/transfer_method.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/transfer/device.hpp"
#include "model/transfer/engine.hpp"
#include "model/transfer/inline.hpp"
#include "model/transfer/mapped.hpp"
#include "model/transfer/pageable.hpp"
#include "model/transfer/peer.hpp"
#include "model/transfer/sm.hpp"
#include "model/transfer/staged.hpp"

namespace tutti::internal {
namespace {

struct MethodRow {
  TransferMethod method;
  CopyMethod word;         ///< by which users ask for it
  std::string_view moves;  ///< what it does, for those who ask for it in vain
  std::optional<RouteView> (*route)(const Topology&, const Transfer&);  ///< nothing: not for such a transfer
  bool moves_rows = false;                                              ///< that lie apart
};

constexpr std::string_view kOfEngines = "data between GPUs and memories that are not pageable, GPUs or devices";
constexpr std::string_view kOfKernels = "data between a memory that is not pageable and a GPU, without rows";

/// Where the machine has the choice, the first row that moves a transfer.
constexpr std::array kMethods{
    MethodRow{{.name = "device", .of_device = true}, CopyMethod::Engine, kOfEngines, route_device},
    MethodRow{{.name = "pageable", .pageable = true},
              CopyMethod::Pageable,
              "data between pageable memory and a GPU, without rows",
              route_pageable},
    MethodRow{{.name = "direct"}, CopyMethod::Engine, kOfEngines, route_engine, true},
    MethodRow{{.name = "peer", .peer_traffic = true}, CopyMethod::Engine, kOfEngines, route_peer},
    MethodRow{{.name = "staged", .chunked = true}, CopyMethod::Engine, kOfEngines, route_staged},
    MethodRow{{.name = "batch", .together = true}, CopyMethod::Batch, kOfKernels, route_engine, true},
    MethodRow{{.name = "sm", .by_kernel = true}, CopyMethod::Sm, kOfKernels, route_sm},
    MethodRow{{.name = "inline", .by_kernel = true, .captured = true},
              CopyMethod::Inline,
              "up to 4 KiB from a memory to a GPU, without rows",
              route_inline},
    MethodRow{{.name = "mapped", .mapped = true}, CopyMethod::Mapped, kOfKernels, route_mapped},
};

bool is_asked_for(const MethodRow& row, const Transfer& transfer) {
  return transfer.method == CopyMethod::Automatic || transfer.method == row.word;
}

}  // namespace

std::optional<bool> goes_up(const Topology& machine, const Transfer& transfer) {
  const auto is = [&](VertexId end, VertexKind kind) { return machine.vertex(end).kind == kind; };
  if (is(transfer.from, VertexKind::Memory) && is(transfer.to, VertexKind::Gpu)) return true;
  if (is(transfer.from, VertexKind::Gpu) && is(transfer.to, VertexKind::Memory)) return false;
  return std::nullopt;
}

bool has_pageable_end(const Topology& machine, const Transfer& transfer) {
  return machine.vertex(transfer.from).pageable || machine.vertex(transfer.to).pageable;
}

std::optional<bool> goes_up_pinned(const Topology& machine, const Transfer& transfer) {
  return has_pageable_end(machine, transfer) ? std::nullopt : goes_up(machine, transfer);
}

RouteView one_engine_route(const Topology& machine, const Transfer& transfer, bool up, EngineId engine) {
  RouteView route;
  route.kind = up ? CopyKind::Up : CopyKind::Down;
  route.first = transfer.route.empty() ? machine.route(transfer.from, transfer.to) : transfer.route;
  route.engines.fill(engine);
  route.end_engines = route.engines;
  route.weight = up ? machine.weights().h2d : machine.weights().d2h;
  return route;
}

RouteView gpu_engine_route(const Topology& machine, const Transfer& transfer, bool up) {
  return one_engine_route(machine, transfer, up,
                          up ? machine.engine_in(transfer.to) : machine.engine_out(transfer.from));
}

RouteView find_route(const Topology& machine, const Transfer& transfer) {
  for (const MethodRow& row : kMethods) {
    if (!is_asked_for(row, transfer) || (transfer.is_strided() && !row.moves_rows)) continue;
    auto route = row.route(machine, transfer);
    if (!route) continue;
    route->method = row.method;
    return *route;
  }
  TUTTI_EXPECTS(transfer.method != CopyMethod::Automatic || transfer.is_strided(),
                "one end of a transfer is a GPU or a device, the other a memory or another GPU");
  return {};
}

Transfer resized(Transfer transfer, Bytes size) {
  constexpr std::int64_t kMostRows = 1 << 30;
  if (transfer.is_strided() && size > Bytes{0}) {
    const std::int64_t row = transfer.row().count, count = std::clamp<std::int64_t>(size.count / row, 1, kMostRows);
    transfer.rows.count = static_cast<std::int32_t>(count);
    size = Bytes{count * row};
  } else if (transfer.rows.pitch == Bytes{0}) {
    transfer.rows.count = 1;
  }
  if (transfer.method == CopyMethod::Inline && size > kMostInline) transfer.method = CopyMethod::Sm;
  transfer.size = size;
  return transfer;
}

std::string why_not(const Topology& machine, const Transfer& transfer) {
  if (transfer.is_strided() && !goes_up_pinned(machine, transfer))
    return "rows that lie apart are copied between a memory that is not pageable and a GPU; leave 'pitch' out here";
  const auto row = std::ranges::find_if(kMethods, [&](const MethodRow& one) { return is_asked_for(one, transfer); });
  return fmt::format("method '{}' moves {}; leave 'method' out here", to_string(transfer.method), row->moves);
}

}  // namespace tutti::internal
