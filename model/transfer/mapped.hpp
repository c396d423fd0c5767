#pragma once
#include <optional>

#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {

/// Between a memory and a GPU, by stores and loads of the host through the GPU's BAR. One thread of the host does the
/// copies of a memory, one after the other; they hold neither an engine nor the GPU. On real GPUs a driver maps the BAR
/// for programs only where GDRCopy is installed.
///
/// Two ways of [FUJ13] do not exist on a stock driver and are no rows: the 4 MB window of BAR0, which the driver maps
/// for itself alone, and microcontrollers of the GPU, whose firmware is signed.
[[nodiscard]] std::optional<RouteView> route_mapped(const Topology& machine, const Transfer& transfer);

}  // namespace tutti::internal
