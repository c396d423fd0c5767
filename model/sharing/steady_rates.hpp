#pragma once
#include <span>
#include <vector>

#include "model/machine/ports.hpp"
#include "model/sharing/bandwidth_model.hpp"

namespace tutti::internal {

/// The rates of copies at several ports, all active together.
class SteadyRates {
 public:
  /// @return [ports] GB/s, and where they come from: `Graph` where not all are of one row.
  /// @pre they can be active together (`can_be_active`).
  [[nodiscard]] PortRates find(const Topology& machine, Basis basis, const PortSet& ports);
  /// @return [ports] GB/s, in their order.
  [[nodiscard]] std::vector<double> find(const Topology& machine, Basis basis, std::span<const PortId> ports);

 private:
  BandwidthModel bandwidth_;
  std::vector<RouteClass> own_classes_;  // where copies between GPUs meet others
  std::vector<std::uint32_t> kinds_;     // [ports]
};

/// Loads a model with a flow for each of the ports.
/// @param own_classes  memory for route classes, in use as long as the model
/// @return [ports] the flow's kind
void load_ports(BandwidthModel& bandwidth, const Topology& machine, Basis basis, std::span<const PortId> ports,
                std::vector<RouteClass>& own_classes, std::vector<std::uint32_t>& kinds);

}  // namespace tutti::internal
