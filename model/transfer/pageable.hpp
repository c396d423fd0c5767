#pragma once
#include <optional>

#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {

/// Between pageable memory and a GPU: threads of the host copy through pinned buffers, and an engine of the GPU between
/// these and the GPU, which it is held for from the first piece to the last.
///
/// The links from and to a pageable memory say what its threads do together, and a shared capacity of the host's memory
/// what a byte costs there: as many passes as `double_queuing_rate` counts, where a copy of pinned memory costs one.
[[nodiscard]] std::optional<RouteView> route_pageable(const Topology& machine, const Transfer& transfer);

}  // namespace tutti::internal
