#pragma once
#include <optional>

#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {

/// From GPU to GPU over the links between them, by an engine of the source. For GPUs with peer access, unless the user
/// names a memory.
[[nodiscard]] std::optional<RouteView> route_peer(const Topology& machine, const Transfer& transfer);

}  // namespace tutti::internal
