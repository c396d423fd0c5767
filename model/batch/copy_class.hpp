#pragma once
#include <optional>

#include "model/machine/topology.hpp"
#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {

/// The route class of a transfer as its costs make it: capped where it is small, slower where buffers are filled for
/// it, with its weight and load beside others; nothing where it is that of its links.
/// @param of_links  of its links
[[nodiscard]] std::optional<RouteClass> class_by_cost(const Topology& machine, const Transfer& transfer,
                                                      const RouteView& route, const RouteClass& of_links);

/// The route class of a transfer that copies of any engine may be beside: no link is its own.
[[nodiscard]] RouteClass class_in_company(const Topology& machine, const Transfer& transfer);

}  // namespace tutti::internal
