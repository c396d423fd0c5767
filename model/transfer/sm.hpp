#pragma once
#include <optional>

#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {

/// Between a memory that GPUs reach and a GPU, by a kernel that loads and stores the memory itself. It holds the GPU as
/// other kernels do, and no engine: a second mover beside the engines, and for small copies a faster one.
///
/// [FUJ13] lets a microcontroller of the GPU move data beside the engine; its firmware is signed today, and a kernel
/// takes its place.
[[nodiscard]] std::optional<RouteView> route_sm(const Topology& machine, const Transfer& transfer);

}  // namespace tutti::internal
