#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/machine/topology.hpp"

namespace tutti::internal::test {

/// A flow over capacities, with all numbers written out: nothing is left out, merged or cached.
struct SlowFlow {
  double weight = 1;
  std::vector<double> cost;  ///< [capacities] taken of each for a byte; 0 where the flow does not cross it
};

/// All limits of a machine, links first, without what background flows take; read from its description alone, without
/// its table.
[[nodiscard]] std::vector<double> slow_capacities(const Topology& machine, Basis basis);

/// What a byte over these links takes of each capacity.
[[nodiscard]] std::vector<double> slow_costs(const Topology& machine, std::span<const LinkId> links);

/// Weighted max-min rates by progressive filling, everything added up anew in each round.
[[nodiscard]] std::vector<double> slow_max_min(std::span<const double> capacities, std::span<const SlowFlow> flows);

/// Why these rates are not the weighted max-min ones: a capacity is exceeded, or some flow crosses no full capacity on
/// which its rate by weight is the largest. This is the definition, not a way to compute them.
[[nodiscard]] std::optional<std::string> find_unfairness(std::span<const double> capacities,
                                                         std::span<const SlowFlow> flows, std::span<const double> rates,
                                                         double tolerance = 1e-9);

}  // namespace tutti::internal::test
