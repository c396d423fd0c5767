#include "model/machine/ports.hpp"

#include <algorithm>

#include "model/base/expects.hpp"
#include "model/machine/route_class.hpp"

namespace tutti::internal {
namespace {

/// Ports of one memory; of the memories together. A machine without memory has the numbers of one.
std::size_t ports_of_memory(const Topology& machine) { return 2 * machine.gpus().size(); }
std::size_t ports_of_memories(const Topology& machine) {
  return ports_of_memory(machine) * std::max<std::size_t>(machine.memories().size(), 1);
}

/// Position among vertices that are in the order of the file; nothing where it is none of them.
std::optional<std::size_t> position_among(std::span<const VertexId> vertices, VertexId vertex) {
  const auto found = std::lower_bound(vertices.begin(), vertices.end(), vertex);
  if (found == vertices.end() || *found != vertex) return std::nullopt;
  return static_cast<std::size_t>(found - vertices.begin());
}

}  // namespace

std::pair<VertexId, VertexId> ends_of(const Topology& machine, PortId port) {
  const auto gpus = machine.gpus();
  const std::size_t of_memories = ports_of_memories(machine);
  if (port.index() < of_memories) {
    const VertexId memory = machine.memories()[port.index() / ports_of_memory(machine)];
    const auto [gpu, direction] = CopyPort::at(PortId(port.index() % ports_of_memory(machine)));
    return direction == Direction::HostToDevice ? std::pair(memory, gpus[gpu]) : std::pair(gpus[gpu], memory);
  }
  const std::size_t from = (port.index() - of_memories) / (gpus.size() - 1);
  const std::size_t other = (port.index() - of_memories) % (gpus.size() - 1);
  TUTTI_EXPECTS(from < gpus.size(), "a port is one of its machine");
  return {gpus[from], gpus[other < from ? other : other + 1]};
}

std::optional<PortId> find_port(const Topology& machine, VertexId from, VertexId to) {
  const auto up = position_among(machine.memories(), from), down = position_among(machine.memories(), to);
  const auto source = position_among(machine.gpus(), from), target = position_among(machine.gpus(), to);
  if (up && target) return PortId(*up * ports_of_memory(machine) + 2 * *target);
  if (source && down) return PortId(*down * ports_of_memory(machine) + 2 * *source + 1);
  if (!source || !target || source == target) return std::nullopt;
  return PortId(ports_of_memories(machine) + *source * (machine.gpus().size() - 1) +
                (*target < *source ? *target : *target - 1));
}

std::optional<PortId> find_port(const Topology& machine, const CopyRoute& copy_route) {
  const auto vertex = [&](const RouteEnd& end) -> std::optional<VertexId> {
    const auto all = end.gpu ? machine.gpus() : machine.memories();
    return end.position < all.size() ? std::optional(all[end.position]) : std::nullopt;
  };
  const auto from = vertex(copy_route.from), to = vertex(copy_route.to);
  if (!from || !to) return std::nullopt;
  const auto port = find_port(machine, *from, *to);
  return port && has_route(machine, *port) ? port : std::nullopt;
}

std::vector<PortId> ports_of(const Topology& machine, const CopyRouteSet& copy_routes) {
  std::vector<PortId> ports;
  for (const CopyRoute& copy_route : copy_routes) ports.push_back(*find_port(machine, copy_route));
  return ports;
}

bool is_of_first_memory(const Topology& machine, PortId port) { return port.index() < ports_of_memory(machine); }

bool has_route(const Topology& machine, PortId port) {
  if (machine.memories().empty() && is_of_first_memory(machine, port)) return false;
  const auto [from, to] = ends_of(machine, port);
  if (machine.route(from, to).empty()) return false;
  return port.index() < ports_of_memories(machine) || machine.has_peer_access(from, to);
}

bool first_memory_has(const Topology& machine, const PortSet& ports) {
  return std::all_of(ports.begin(), ports.end(),
                     [&](PortId port) { return is_of_first_memory(machine, port) && has_route(machine, port); });
}

bool can_be_active(const Topology& machine, const PortSet& ports) {
  std::vector<EngineId> held;
  for (const PortId port : ports) {
    if (!has_route(machine, port)) return false;
    const auto [from, to] = ends_of(machine, port);
    const bool up = machine.vertex(from).kind == VertexKind::Memory;
    const bool between_gpus = port.index() >= ports_of_memories(machine);
    const EngineId engine = between_gpus ? machine.peer_engine_out(from)
                            : up         ? machine.engine_in(to)
                                         : machine.engine_out(from);
    if (std::find(held.begin(), held.end(), engine) != held.end()) return false;
    held.push_back(engine);
  }
  return true;
}

bool can_be_active(const Topology& machine, const CopyRouteSet& copy_routes) {
  PortSet ports;
  for (const CopyRoute& copy_route : copy_routes) {
    const auto port = find_port(machine, copy_route);
    if (!port || ports.contains(*port)) return false;
    ports.insert(*port);
  }
  return can_be_active(machine, ports);
}

std::span<const LinkId> links_at(const Topology& machine, PortId port) {
  const auto [from, to] = ends_of(machine, port);
  return machine.route(from, to);
}

RouteClass class_at(const Topology& machine, PortId port, std::span<const LinkId> met) {
  const SharingWeights& weights = machine.weights();
  const auto [from, to] = ends_of(machine, port);
  const bool from_gpu = machine.vertex(from).kind == VertexKind::Gpu;
  const bool to_gpu = machine.vertex(to).kind == VertexKind::Gpu;
  const double weight = from_gpu && to_gpu ? weights.peer : to_gpu ? weights.h2d : weights.d2h;
  RouteClass kind = make_route_class(machine, links_at(machine, port), {}, weight, met);
  if (machine.table() != nullptr && machine.table()->covers(port)) kind.port = port;
  return kind;
}

std::vector<LinkId> last_links_between_gpus(const Topology& machine, std::span<const PortId> ports) {
  std::vector<LinkId> links;
  for (const PortId port : ports)
    if (port.index() >= ports_of_memories(machine)) links.push_back(links_at(machine, port).back());
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

}  // namespace tutti::internal
