#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "model/topology_parts.hpp"

namespace tutti {
namespace {

/// Whether only the copy engine of one GPU can use a capacity: it is of the GPU's own link.
bool is_private(const Topology::Parts& parts, const CapacityUse& use) {
  if (use.capacity.index() >= parts.links.size()) return false;  // a shared one
  const Link& link = parts.links[use.capacity.index()];
  return parts.vertices[link.from.index()].kind == VertexKind::Gpu ||
         parts.vertices[link.to.index()].kind == VertexKind::Gpu;
}

/// What a byte takes on a route of the capacities that are private or that are not, appended to `way_uses`; each once.
void add_way_uses(Topology::Parts& parts, std::span<const LinkId> route, bool wanted_private) {
  const auto begin = static_cast<std::ptrdiff_t>(parts.way_uses.size());
  for (const LinkId link : route) {
    for (std::uint32_t i = parts.use_begin[link.index()]; i < parts.use_begin[link.index() + 1]; ++i) {
      const CapacityUse use = parts.uses[i];
      if (is_private(parts, use) != wanted_private) continue;
      const auto same = std::find_if(parts.way_uses.begin() + begin, parts.way_uses.end(),
                                     [&](const CapacityUse& other) { return other.capacity == use.capacity; });
      if (same == parts.way_uses.end()) {
        parts.way_uses.push_back(use);
      } else {
        same->cost += use.cost;
      }
    }
  }
}

/// The rate at which the first of the capacities is full.
GBps rate_alone(std::span<const CapacityUse> uses, std::span<const double> capacities) {
  double rate = std::numeric_limits<double>::infinity();
  for (const CapacityUse& use : uses) rate = std::min(rate, capacities[use.capacity.index()] / use.cost);
  return {rate};
}

/// A direct way but for its uses, which are appended to `way_uses`; the number of them too.
std::pair<DirectWay, std::size_t> make_direct_way(Topology::Parts& parts, VertexId from, VertexId to) {
  const std::size_t pair = parts.endpoint[from.index()] * parts.endpoint_count + parts.endpoint[to.index()];
  const std::size_t begin = parts.route_begin[pair];
  const std::size_t use_begin = parts.way_uses.size();
  const bool in = parts.vertices[to.index()].kind == VertexKind::Gpu;
  DirectWay way;
  way.links = std::span(parts.route_links).subspan(begin, parts.route_begin[pair + 1] - begin);
  way.engine = in ? parts.engine_in[to.index()] : parts.engine_out[from.index()];
  way.weight = in ? parts.weights.h2d : parts.weights.d2h;
  add_way_uses(parts, way.links, false);
  way.contested = static_cast<std::uint32_t>(parts.way_uses.size() - use_begin);
  add_way_uses(parts, way.links, true);
  return {way, parts.way_uses.size() - use_begin};
}

/// Gives ways their uses, and those that are alike the same number.
void finish_direct_ways(Topology::Parts& parts, std::span<const std::size_t> use_counts) {
  std::map<std::vector<double>, std::uint32_t> kinds;
  std::size_t begin = 0;
  auto count = use_counts.begin();
  for (std::vector<DirectWay>* direction : {&parts.direct_ways.in, &parts.direct_ways.out}) {
    for (DirectWay& way : *direction) {
      way.uses = std::span(parts.way_uses).subspan(begin, *count);
      way.alone = {rate_alone(way.uses, parts.nominal), rate_alone(way.uses, parts.guaranteed)};
      std::vector<double> key{way.alone.nominal.value, way.alone.guaranteed.value, way.weight};
      for (const CapacityUse& use : way.uses.first(way.contested)) {
        key.insert(key.end(), {static_cast<double>(use.capacity.value), use.cost});
      }
      way.kind = kinds.emplace(std::move(key), static_cast<std::uint32_t>(kinds.size())).first->second;
      begin += *count++;
      parts.direct_ways.most_contested = std::max(parts.direct_ways.most_contested, way.contested);
    }
  }
  parts.direct_ways.kinds = static_cast<std::uint32_t>(kinds.size());
}

}  // namespace

void find_direct_ways(Topology::Parts& parts) {
  DirectWays& ways = parts.direct_ways;
  ways.memory.assign(parts.vertices.size(), DirectWays::kNone);
  ways.gpu.assign(parts.vertices.size(), DirectWays::kNone);
  for (std::uint32_t i = 0; i < parts.memories.size(); ++i) ways.memory[parts.memories[i].index()] = i;
  for (std::uint32_t i = 0; i < parts.gpus.size(); ++i) ways.gpu[parts.gpus[i].index()] = i;
  ways.gpus = parts.gpus.size();
  std::vector<std::size_t> use_counts;
  const auto add = [&](std::vector<DirectWay>& direction, VertexId from, VertexId to) {
    const auto [way, uses] = make_direct_way(parts, from, to);
    direction.push_back(way);
    use_counts.push_back(uses);
  };
  for (const VertexId memory : parts.memories)
    for (const VertexId gpu : parts.gpus) add(ways.in, memory, gpu);
  for (const VertexId memory : parts.memories)
    for (const VertexId gpu : parts.gpus) add(ways.out, gpu, memory);
  finish_direct_ways(parts, use_counts);
}

}  // namespace tutti
