#pragma once
#include <optional>

#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {

/// Between a memory that GPUs reach and a GPU, by one of the GPU's engines.
[[nodiscard]] std::optional<RouteView> route_engine(const Topology& machine, const Transfer& transfer);

}  // namespace tutti::internal
