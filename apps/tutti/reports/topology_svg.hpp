#pragma once
#include <optional>
#include <string>

#include "model/batch/batch.hpp"

namespace tutti::internal {

/// A picture of a machine: memories and devices on the left, GPUs on the right, a line for each pair of linked
/// vertices, as wide as its bandwidth, with the nominal bandwidths of both directions; shared capacities with the lines
/// that they limit.
/// @param batch  of this machine: links are coloured by the share of their capacity that it uses on average, from its
///               start to its end; absent: none is
[[nodiscard]] std::string topology_svg(const Topology& machine, const std::optional<Batch>& batch = {});

}  // namespace tutti::internal
