#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "model/machine/topology.hpp"

/// Which guaranteed bandwidth to lower, and how far, so that the graph gives a copy no more than it was measured with.
namespace tutti::internal {

/// Digits of a lowered bandwidth: finer than any measurement repeats.
inline constexpr int kFloorDigits = 4;

using Links = std::span<const LinkId>;

/// The links of every copy that is active.
[[nodiscard]] std::vector<Links> links_of(const Topology& machine, std::span<const PortId> ports);
/// [capacities] Load of the copies on each capacity.
[[nodiscard]] std::vector<double> loads_of(const Topology& machine, std::span<const Links> links,
                                           std::span<const double> rates);

/// A capacity and its new guaranteed bandwidth.
struct LowerCapacity {
  std::size_t capacity;
  double value;
};

/// The capacity on a route that must lose the smallest part to hold a copy back by `too_much`, and its new value.
/// @param load  [capacities] of all copies that are active
[[nodiscard]] LowerCapacity least_loss(const Topology& machine, Links links, std::span<const double> load,
                                       double too_much);
/// The slowest link on a route, lowered to `most`: it holds the copy back whatever else is active.
[[nodiscard]] LowerCapacity hold_alone(const Topology& machine, Links links, double most);

}  // namespace tutti::internal
