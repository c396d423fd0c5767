#pragma once
#include <utility>

#include "model/bandwidth_model.hpp"

namespace tutti {

/// From where to where a stream between the first memory and a GPU goes.
/// @pre the machine has a memory and that GPU.
[[nodiscard]] std::pair<VertexId, VertexId> ends_of(const Topology& machine, HostStream stream);

/// Whether each of these streams has its GPU, the memory and a way.
[[nodiscard]] bool has_ways(const Topology& machine, StreamSet streams);

/// The rates of streams between the first memory and the GPUs, all active together.
class SteadyRates {
 public:
  /// @return [streams] GB/s in the order of positions, and where they come from.
  /// @pre every stream has a way (`has_ways`).
  [[nodiscard]] StreamRates find(const Topology& machine, Basis basis, StreamSet streams);

 private:
  BandwidthModel bandwidth_;
};

}  // namespace tutti
