#include "model/batch/copy_class.hpp"

#include "model/machine/route_class.hpp"

namespace tutti::internal {
namespace {

/// The part of filling and emptying buffers that leaves the link to others makes a copy with nothing else active
/// slower. Guaranteed, all of it comes beside the bytes (`copy_times`).
void slow_by_filling(const CopyCost& cost, double bytes, RouteClass& route_class) {
  const double idle = (1 - kFillingWork) * (cost.ns(Basis::Nominal, bytes) - as_ns(cost.each.nominal));
  double& alone = route_class.alone.nominal.value;
  alone = bytes / (bytes / alone + idle);
  route_class.capped = true;
}

}  // namespace

std::optional<RouteClass> class_by_cost(const Topology& machine, const Transfer& transfer, const RouteView& route,
                                        const RouteClass& of_links) {
  const CopyCosts& costs = machine.setup().transfer;
  const CopyKind kind = costs.counted(route.kind);
  const CopyCost& cost = costs.of(kind);
  const auto bytes = static_cast<double>(transfer.size.count);
  const bool is_small = cost.small && transfer.size < cost.below;
  const bool is_filled = is_pageable(kind) && cost.sizes.front().size > Bytes{0} && bytes > 0;
  if (!is_small && !is_filled && !shares_otherwise(cost)) return std::nullopt;
  RouteClass own = of_links;
  if (is_small) cap(own, *cost.small);
  if (is_filled) slow_by_filling(cost, bytes, own);
  share_as(machine, route.first, cost, gap_share(cost, kind, transfer.row(), transfer.rows.pitch), own);
  return own;
}

RouteClass class_in_company(const Topology& machine, const Transfer& transfer) {
  const RouteView route = find_route(machine, transfer);
  const RouteClass of_links = whole_route_class(machine, route.first, route.second, route.weight);
  return class_by_cost(machine, transfer, route, of_links).value_or(of_links);
}

}  // namespace tutti::internal
