#include "tests/support/slow_copy.hpp"

#include <algorithm>
#include <vector>

namespace tutti::internal::test {
namespace {

/// A flow with the weight and the load of its class: on each capacity that a link of its route and the same link back
/// are members of it takes so much more, but no more than it can have of it alone.
/// @param alone  its rate with nothing beside it, without the load
/// @param load   what a byte takes
void share(const Topology& machine, std::span<const double> capacities, std::span<const LinkId> route, double alone,
           double load, SlowFlow& flow) {
  for (std::size_t c = 0; c < machine.shared().size(); ++c) {
    const auto& members = machine.shared()[c].members;
    const std::size_t at = machine.links().size() + c;
    const auto is_member = [&](VertexId from, VertexId to) {
      return std::ranges::any_of(members, [&](const CapacityMember& member) {
        return machine.link(member.link).from == from && machine.link(member.link).to == to;
      });
    };
    const auto goes_both_ways = [&](LinkId id) {
      return is_member(machine.link(id).to, machine.link(id).from) && flow.cost[at] > 0;
    };
    if (!std::ranges::any_of(route, goes_both_ways)) continue;
    flow.cost[at] *= std::min(load, capacities[at] / (flow.cost[at] * alone));
  }
}

}  // namespace

bool is_by_kernel(const Transfer& transfer) {
  return transfer.method == CopyMethod::Sm || transfer.method == CopyMethod::Inline;
}

CopyKind counted_class(const Topology& machine, const Transfer& transfer) {
  const CopyKind kind = find_route(machine, transfer).kind;
  return machine.setup().transfer.of(kind) == CopyCost{} ? base_of(kind) : kind;
}

std::set<SlowLock> slow_engines(const Topology& machine, const Transfer& transfer, bool both_ends) {
  const bool peer = find_route(machine, transfer).method.peer_traffic;
  const bool up = machine.vertex(transfer.to).kind == VertexKind::Gpu;
  if (is_by_kernel(transfer)) return {{(up ? transfer.to : transfer.from).index(), 2}};
  if (transfer.method == CopyMethod::Mapped) return {{(up ? transfer.from : transfer.to).index(), 6}};
  for (const auto& [end, direction] : {std::pair{transfer.from, 1}, {transfer.to, 0}})
    if (machine.vertex(end).kind == VertexKind::Device) return {{end.index(), direction}};
  std::set<SlowLock> locks;
  const auto add = [&](VertexId gpu, int direction) {
    const Vertex& vertex = machine.vertex(gpu);
    if (vertex.kind != VertexKind::Gpu) return;
    if (peer && vertex.copy_engines >= 3) {
      locks.insert({gpu.index(), 3 + direction});
    } else {
      locks.insert({gpu.index(), vertex.copy_engines == 1 ? 0 : direction});
    }
  };
  add(transfer.from, 1);
  if (!peer || both_ends) add(transfer.to, 0);
  return locks;
}

/// Bytes. The engine reads rows one by one, and takes longer for what lies in less than 16 bytes with others.
double slow_gap(const Topology& machine, const Transfer& transfer, const CopyCost& cost, Basis basis) {
  Bytes bytes = cost.gap.nominal;
  if (basis == Basis::Guaranteed) bytes = cost.gap.guaranteed;
  if (basis == Basis::Guaranteed && cost.gap.in_step && transfer.rows.pitch.count % 32 == 0) bytes = *cost.gap.in_step;
  const double gap = static_cast<double>(bytes.count);
  const bool is_read = machine.vertex(transfer.to).kind == VertexKind::Gpu;
  return is_read && transfer.rows.pitch.count < 16 ? gap * 16 / static_cast<double>(transfer.rows.pitch.count) : gap;
}

SlowCopy slow_copy(const Topology& machine, Basis basis, std::span<const double> capacities, const Transfer& transfer) {
  const RouteView route = find_route(machine, transfer);
  const CopyCost& cost = machine.setup().transfer.of(counted_class(machine, transfer));
  const double bytes = static_cast<double>(transfer.size.count);
  const bool fills = bytes > 0 && (machine.vertex(transfer.from).pageable || machine.vertex(transfer.to).pageable);
  const double all = cost.ns(basis, bytes), each = fills ? as_ns(cost.each.at(basis)) : all;
  std::vector<LinkId> links(route.first.begin(), route.first.end());
  links.insert(links.end(), route.second.begin(), route.second.end());
  SlowCopy copy{each, 0, bytes, 0, {route.weight * cost.weight, slow_costs(machine, links)}};
  copy.flow.cost.resize(capacities.size(), 0);
  copy.alone = slow_max_min(capacities, {&copy.flow, 1})[0];
  double load = cost.load;
  if (cost.small && transfer.size < cost.below) copy.alone = std::min(copy.alone, cost.small->at(basis).value);
  if (all > each && basis == Basis::Nominal)
    copy.alone = bytes / (bytes / copy.alone + (1 - kFillingWork) * (all - each));
  if (transfer.is_strided()) {  // rows: each takes as long as the gap, too, and has less of a link
    const double row = static_cast<double>(transfer.row().count), gap = slow_gap(machine, transfer, cost, basis);
    copy.alone *= row / (row + gap);
    copy.flow.weight *= row / (row + slow_gap(machine, transfer, cost, Basis::Nominal));
    if (gap > 0) load = 1 + cost.load * gap / row;
  }
  share(machine, capacities, route.first, copy.alone, load, copy.flow);
  copy.filling = (all - each) * (basis == Basis::Nominal ? kFillingWork : 1) * copy.alone;
  return copy;
}

}  // namespace tutti::internal::test
