#pragma once
#include <string>
#include <vector>

#include "model/measurement.hpp"
#include "model/topology.hpp"

namespace tutti {

/// What copies from and to further memories and between GPUs say of a machine.
struct RouteFit {
  Topology machine;                       ///< of what was fitted guaranteed is nominal
  std::vector<std::string> undetermined;  ///< a sentence for what the graph cannot say
};

/// Fits the links that these copies cross and no copy from or to the first memory does; those are fitted by
/// `fit_graph`.
///
/// Each link begins at the most that was seen on it; then, in turn and by ever smaller steps, links become faster or
/// slower where that brings predicted rates nearer to the measured ones. Shared capacities stay.
///
/// A copy that is clearly slower beside others than the graph says is told: nominal rates do not know of it, only
/// guaranteed ones (`guarantee`).
///
/// @param fitted  what `fit_graph` found.
/// @pre every combination can be active on the machine (`can_be_active`).
[[nodiscard]] RouteFit fit_routes(const Topology& fitted, const std::vector<RouteCombination>& combinations);

}  // namespace tutti
