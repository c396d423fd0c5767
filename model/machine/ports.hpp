#pragma once
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/machine/copy_route.hpp"
#include "model/machine/topology.hpp"

/// The copy ports of a machine: the ends between which a copy stays on one route and needs one copy engine.
///
/// Every pair of a memory and a GPU, in both directions, and every ordered pair of GPUs has a number, whether or not a
/// route is there: ports of the first memory (`CopyPort`), of the second, ..., then from the first GPU to each other
/// one, from the second GPU, ...
namespace tutti::internal {

/// Source and destination of a port.
/// @pre the machine has a memory, and the port is one of its numbers.
[[nodiscard]] std::pair<VertexId, VertexId> ends_of(const Topology& machine, PortId port);
/// The port from one vertex to another; nothing where these are no memory and GPU, and no two GPUs.
[[nodiscard]] std::optional<PortId> find_port(const Topology& machine, VertexId from, VertexId to);
/// The port of a copy as measurements name it; nothing where the machine lacks an end, or no data goes from the one to
/// the other without a detour through a memory.
[[nodiscard]] std::optional<PortId> find_port(const Topology& machine, const CopyRoute& copy_route);
/// The ports of such copies, in their order.
/// @pre each has one.
[[nodiscard]] std::vector<PortId> ports_of(const Topology& machine, const CopyRouteSet& copy_routes);

/// Whether the port is between the first memory and a GPU.
[[nodiscard]] bool is_of_first_memory(const Topology& machine, PortId port);
/// Whether data goes from the one end to the other without a detour through a memory.
[[nodiscard]] bool has_route(const Topology& machine, PortId port);
/// Whether all these ports are between the first memory and GPUs of the machine, each with a route.
[[nodiscard]] bool first_memory_has(const Topology& machine, const PortSet& ports);
/// Whether copies at all these ports can be active together: each has a route, and no two need one copy engine.
[[nodiscard]] bool can_be_active(const Topology& machine, const PortSet& ports);
/// Whether copies of these routes can be.
[[nodiscard]] bool can_be_active(const Topology& machine, const CopyRouteSet& copy_routes);

/// The links of a port's route.
[[nodiscard]] std::span<const LinkId> links_at(const Topology& machine, PortId port);
/// The route class of a port as the machine's batches have it.
/// @param met  last links of the copies between GPUs beside it, rising
[[nodiscard]] RouteClass class_at(const Topology& machine, PortId port, std::span<const LinkId> met);
/// Last links of the ports between GPUs, rising: copies that different GPUs issue meet there.
[[nodiscard]] std::vector<LinkId> last_links_between_gpus(const Topology& machine, std::span<const PortId> ports);

}  // namespace tutti::internal
