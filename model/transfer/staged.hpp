#pragma once
#include <optional>

#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {

/// From GPU to GPU through a memory that they reach, in chunks, by an engine of each: through `via`, or the memory with
/// the fewest links in all, ties by the order of the file.
[[nodiscard]] std::optional<RouteView> route_staged(const Topology& machine, const Transfer& transfer);

}  // namespace tutti::internal
