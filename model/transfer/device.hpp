#pragma once
#include <optional>

#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {

/// From a device to a memory or a GPU, or to a device from there, by an engine of the device. It holds no engine of a
/// GPU.
///
/// A device has no costs and weights of its own: what it sends counts as a copy up, what it receives as a copy down.
[[nodiscard]] std::optional<RouteView> route_device(const Topology& machine, const Transfer& transfer);

}  // namespace tutti::internal
