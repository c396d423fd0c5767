#pragma once
#include <span>
#include <vector>

#include "model/machine/topology.hpp"

namespace tutti::internal {

/// The route class of a transfer over these links.
///
/// Links at a GPU are left out of `uses` where only one copy engine moves data over them, one transfer at a time: they
/// limit a transfer alone and never two against each other.
///
/// @param first,second  the links of the route, in two legs; the second may be empty.
/// @param met  links of GPUs over which copies that other GPUs or devices issue go as well, rising
[[nodiscard]] RouteClass make_route_class(const Topology& machine, std::span<const LinkId> first,
                                          std::span<const LinkId> second, double weight,
                                          std::span<const LinkId> met = {});

/// The numbers of a route class as a key for look-ups.
[[nodiscard]] std::vector<double> route_class_key(const RouteClass& kind);

}  // namespace tutti::internal
