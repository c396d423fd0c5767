#pragma once
#include <string>
#include <vector>

#include "apps/lab/fits/measurement.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// Fits: digits of results, more than any measurement has; residuals beyond this count linearly.
inline constexpr int kFittedDigits = 5;
inline constexpr double kLargeResidual = 0.02;

/// A machine whose links, shared capacities, costs and weights were fitted to measured rates.
struct GraphFit {
  Topology machine;                       ///< without a table; fitted figures have guaranteed = nominal
  std::vector<std::string> undetermined;  ///< a sentence for every figure that the measurements leave open
};

/// Fits the graph of a machine to the rates of combinations.
///
/// The unknowns are the bandwidths of the links between the first memory and the GPUs, the shared capacities and costs,
/// and the weight of d2h against h2d. Three shapes of shared capacity are tried where the machine has none of that
/// shape, and kept where they explain more: both directions of a link that several GPUs use; both directions of every
/// GPU's own link; every GPU's own link into it together with all that goes into the memory (its reads wait behind the
/// writes of all).
///
/// Rates are piecewise smooth in the unknowns: smooth as long as every stream is held back by the same capacity. So
/// each round takes the rates' slopes where they are, solves a damped, bounded least squares problem in the logarithms
/// of rates and unknowns, and finds anew which capacity holds each stream back. Large residuals count linearly, not
/// squared.
///
/// @pre every combination names GPUs of the machine, and every stream of a combination has a route.
[[nodiscard]] GraphFit fit_graph(const Topology& machine, const std::vector<Combination>& combinations);

}  // namespace tutti::internal
