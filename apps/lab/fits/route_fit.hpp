#pragma once
#include <map>
#include <string>
#include <vector>

#include "apps/lab/fits/measurement.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// A machine fitted to copies of further memories and between GPUs.
struct RouteFit {
  Topology machine;                       ///< fitted bandwidths have guaranteed = nominal
  std::vector<std::string> undetermined;  ///< a sentence for every combination that the graph cannot explain
  /// What one copy of pageable memory has with nothing else active, where several were measured together: the threads
  /// of a copy, not the memory, are the limit then. By class; absent: not known.
  std::map<CopyKind, Bandwidth> of_one_copy = {};
};

/// Fits the links that these copies cross and no copy from or to the first memory does; `fit_graph` fits the others.
///
/// Each link begins at the most that was seen on it; then, in turn and by ever smaller steps, links become faster or
/// slower where that brings predicted rates nearer to the measured ones. Shared capacities stay.
///
/// Copies of pageable memory are no faster than one alone, whatever their links allow.
///
/// A copy that is clearly slower beside others than the graph predicts is reported: nominal rates cover it in measured
/// combinations alone (the table), guaranteed ones everywhere (`guarantee`).
///
/// @param fitted  the result of `fit_graph`.
/// @pre every combination can be active on the machine (`can_be_active`).
[[nodiscard]] RouteFit fit_routes(const Topology& fitted, const std::vector<RouteCombination>& combinations);

}  // namespace tutti::internal
