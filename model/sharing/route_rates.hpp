#pragma once
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/machine/copy_route.hpp"
#include "model/sharing/bandwidth_model.hpp"

namespace tutti::internal {

/// The end vertices of a copy route; nothing where the machine lacks one, or no data goes from the one to the other
/// without a detour through a memory.
[[nodiscard]] std::optional<std::pair<VertexId, VertexId>> ends_of(const Topology& machine,
                                                                   const CopyRoute& copy_route);

/// Whether all of these copies can be active together: each has a route, and no two need one copy engine.
[[nodiscard]] bool can_be_active(const Topology& machine, const CopyRouteSet& copy_routes);

/// The links that a copy route crosses.
/// @pre it has ends (`ends_of`).
[[nodiscard]] std::span<const LinkId> links_of(const Topology& machine, const CopyRoute& copy_route);

/// The rates of copies of all kinds, all active together.
class RouteRates {
 public:
  /// @return [copy_routes] GB/s.
  /// @pre `can_be_active`.
  [[nodiscard]] std::vector<double> find(const Topology& machine, Basis basis, const CopyRouteSet& copy_routes);

 private:
  BandwidthModel bandwidth_;
};

}  // namespace tutti::internal
