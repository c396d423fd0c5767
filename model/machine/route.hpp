#pragma once
#include <utility>

#include "model/machine/topology.hpp"

namespace tutti::internal {

/// Whether two GPUs lie in one PCIe domain.
[[nodiscard]] inline bool same_domain(const Topology& machine, VertexId a, VertexId b) {
  return machine.domain(a) == machine.domain(b);
}

/// Source and destination of a stream between the first memory and a GPU.
/// @pre the machine has a memory and that GPU.
[[nodiscard]] std::pair<VertexId, VertexId> ends_of(const Topology& machine, CopyPort stream);

/// The streams that wait for a copy engine that another of them has: for each GPU with one engine and both streams in
/// the set, the one up. Empty where all can be active together.
[[nodiscard]] PortSet waiting_streams(const Topology& machine, PortSet streams);

/// Whether each of these streams has its GPU, the memory and a route.
[[nodiscard]] bool has_routes(const Topology& machine, PortSet streams);

}  // namespace tutti::internal
