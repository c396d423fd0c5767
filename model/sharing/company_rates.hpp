#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "model/machine/topology.hpp"

namespace tutti::internal {

/// A flow that others may be active beside.
struct CompanyFlow {
  std::uint32_t engine = 0;  ///< at most one flow of an engine, or of engines that are held together, is active
  double weight = 1;         ///< sharing weight
  double alone = 0;          ///< byte/ns, > 0: its rate with nothing else active, at least
  double most = std::numeric_limits<double>::infinity();  ///< byte/ns that it never exceeds, whatever the machine
  std::vector<CapacityUse> uses;                          ///< of capacities that it shares with others; each once
};

/// The rate that each flow has at least, whichever of the others are active, at any time: at most one of each engine.
///
/// Max-min sharing is not monotone, so no single company is the worst. But a flow f that its own limit does not hold
/// back is held back by a full capacity c, on which nobody has a higher level (rate per weight): with l_gc = weight x
/// cost and lambda the level of f,
///   C_c <= l_fc lambda + sum over the other engines K of max over g in K of l_gc min(lambda, most_g / weight_g).
/// The right side grows with lambda, so lambda is at least where both are equal, at the capacity where that is least. A
/// capacity that all together cannot fill holds nobody back. `most` must hold for any machine whose capacities are at
/// or above those given (what a link's standard promises, not what was measured): a faster link takes more from others.
///
/// @param capacities  byte/ns, those guaranteed
/// @return [flows] byte/ns; > 0
[[nodiscard]] std::vector<double> rates_in_company(std::span<const double> capacities,
                                                   std::span<const CompanyFlow> flows);

}  // namespace tutti::internal
