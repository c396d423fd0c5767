#pragma once
#include "model/machine/route.hpp"
#include "model/sharing/bandwidth_model.hpp"

namespace tutti::internal {

/// The rates of streams between the first memory and the GPUs, all active together.
class SteadyRates {
 public:
  /// @return [streams] GB/s in the order of positions, and where they come from.
  /// @pre every stream has a route (`has_routes`).
  [[nodiscard]] PortRates find(const Topology& machine, Basis basis, PortSet streams);

 private:
  BandwidthModel bandwidth_;
};

}  // namespace tutti::internal
