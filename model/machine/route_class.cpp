#include "model/machine/route_class.hpp"

#include <algorithm>
#include <limits>

namespace tutti::internal {
namespace {

/// Whether only one copy engine can use a capacity: it is of a GPU's own link, the GPU has no further engine for copies
/// to and from other GPUs, and no copy of another GPU's or a device's engine goes over it.
bool is_private(const Topology& machine, CapacityId capacity, std::span<const LinkId> met) {
  if (capacity.index() >= machine.links().size()) return false;  // a shared one
  if (std::find(met.begin(), met.end(), LinkId{capacity.value}) != met.end()) return false;
  const Link& link = machine.links()[capacity.index()];
  const auto one_engine = [&](VertexId end) {
    const Vertex& vertex = machine.vertex(end);
    return vertex.kind == VertexKind::Gpu && vertex.copy_engines < kPeerEngines;
  };
  return one_engine(link.from) || one_engine(link.to);
}

/// The rate at which the first of the capacities is full.
GBps rate_alone(std::span<const CapacityUse> uses, std::span<const double> capacities) {
  double rate = std::numeric_limits<double>::infinity();
  for (const CapacityUse& use : uses) rate = std::min(rate, capacities[use.capacity.index()] / use.cost);
  return {rate};
}

bool is_of_link(const Topology& machine, LinkId link, CapacityId capacity) {
  return std::ranges::find(machine.uses(link), capacity, &CapacityUse::capacity) != machine.uses(link).end();
}

/// Whether a capacity is of a route's link in the other direction, too.
bool is_of_both_ways(const Topology& machine, std::span<const LinkId> route, CapacityId capacity) {
  return std::ranges::any_of(route, [&](LinkId id) {
    const Link& link = machine.link(id);
    const auto back = machine.find_link(link.to, link.from);
    return back && is_of_link(machine, *back, capacity);
  });
}

/// Whether a capacity is of a GPU's own link, in either direction, on a route from or to that GPU.
bool is_of_own_link(const Topology& machine, std::span<const LinkId> route, CapacityId capacity) {
  return std::ranges::any_of(route, [&](LinkId id) {
    const Link& link = machine.link(id);
    const auto is_gpu = [&](VertexId end) { return machine.vertex(end).kind == VertexKind::Gpu; };
    if (!is_gpu(link.from) && !is_gpu(link.to)) return false;
    const auto back = machine.find_link(link.to, link.from);
    return is_of_link(machine, id, capacity) || (back && is_of_link(machine, *back, capacity));
  });
}

}  // namespace

RouteClass whole_route_class(const Topology& machine, std::span<const LinkId> first, std::span<const LinkId> second,
                             double weight) {
  RouteClass kind;
  kind.weight = weight;
  for (const std::span<const LinkId> leg : {first, second}) {
    for (const LinkId link : leg) {
      for (const CapacityUse& use : machine.uses(link)) {
        const auto same = std::find_if(kind.uses.begin(), kind.uses.end(),
                                       [&](const CapacityUse& other) { return other.capacity == use.capacity; });
        if (same == kind.uses.end()) {
          kind.uses.push_back(use);
        } else {
          same->cost += use.cost;
        }
      }
    }
  }
  kind.alone = {rate_alone(kind.uses, machine.capacities(Basis::Nominal)),
                rate_alone(kind.uses, machine.capacities(Basis::Guaranteed))};
  kind.guaranteed_uses = kind.uses;
  return kind;
}

RouteClass make_route_class(const Topology& machine, std::span<const LinkId> first, std::span<const LinkId> second,
                            double weight, std::span<const LinkId> met) {
  RouteClass kind = whole_route_class(machine, first, second, weight);
  std::erase_if(kind.uses, [&](const CapacityUse& use) { return is_private(machine, use.capacity, met); });
  kind.guaranteed_uses = kind.uses;
  return kind;
}

void cap(RouteClass& route_class, const Bandwidth& rate) {
  route_class.alone.nominal = std::min(route_class.alone.nominal, rate.nominal);
  route_class.alone.guaranteed = std::min(route_class.alone.guaranteed, rate.guaranteed);
  route_class.capped = true;
}

GapShare gap_share(const CopyCost& cost, CopyKind kind, Bytes row, Bytes pitch) {
  constexpr Bytes kCrowded{16};
  if (!is_of_rows(kind) || row == Bytes{0}) return {};
  const Gap& gap = cost.gap;
  const double crowding = kind == CopyKind::RowsUp && pitch < kCrowded
                              ? static_cast<double>(kCrowded.count) / static_cast<double>(pitch.count)
                              : 1;
  const auto share = [&](Bytes of) {
    return crowding * static_cast<double>(of.count) / static_cast<double>(row.count);
  };
  return {share(gap.nominal), share(gap.at_most(pitch))};
}

bool shares_otherwise(const CopyCost& cost) { return cost.gap != Gap{} || cost.weight != 1 || cost.load != 1; }

void share_as(const Topology& machine, std::span<const LinkId> route, const CopyCost& cost, const GapShare& gaps,
              RouteClass& route_class) {
  route_class.weight *= cost.weight / (1 + gaps.nominal);
  if (gaps.guaranteed > 0) {
    const Bandwidth alone = route_class.alone;
    cap(route_class, {{alone.nominal.value / (1 + gaps.nominal)}, {alone.guaranteed.value / (1 + gaps.guaranteed)}});
    route_class.port = std::nullopt;  // the table is of whole copies
  }
  const auto is_shared = [&](const CapacityUse& use) { return is_of_both_ways(machine, route, use.capacity); };
  const auto is_own = [&](const CapacityUse& use) { return is_of_own_link(machine, route, use.capacity); };
  const bool has_own =
      std::ranges::any_of(route_class.uses, [&](const CapacityUse& use) { return is_shared(use) && is_own(use); });
  const auto add_load = [&](std::vector<CapacityUse>& uses, Basis basis) {
    for (CapacityUse& use : uses) {
      if (!is_shared(use)) continue;
      // A copy alone does not fill it more than to the brim.
      const double brim =
          machine.capacities(basis)[use.capacity.index()] / (use.cost * route_class.alone.at(basis).value);
      const double gap = gaps.at(basis), bytes = 1 + gap;
      const double load = gap > 0 ? 1 + cost.load * gap : cost.load;
      const bool is_measured = !has_own || is_own(use);
      const double elsewhere = basis == Basis::Guaranteed ? std::max(load, bytes) : bytes;
      use.cost *= std::min(is_measured ? load : elsewhere, brim);
    }
  };
  add_load(route_class.uses, Basis::Nominal);
  add_load(route_class.guaranteed_uses, Basis::Guaranteed);
}

std::vector<double> route_class_key(const RouteClass& kind) {
  std::vector<double> key{kind.alone.nominal.value, kind.alone.guaranteed.value, kind.weight,
                          kind.port ? static_cast<double>(kind.port->value) : -1};
  for (const auto* uses : {&kind.uses, &kind.guaranteed_uses})
    for (const CapacityUse& use : *uses) key.insert(key.end(), {static_cast<double>(use.capacity.value), use.cost});
  return key;
}

}  // namespace tutti::internal
