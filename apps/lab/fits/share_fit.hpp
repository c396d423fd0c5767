#pragma once
#include <span>

#include "apps/lab/fits/measurement.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// How copies by kernels and copies of rows share their links with those of engines, from measurements of two at once.
///
/// The gap of rows is what copies of shorter rows take longer; at most, what copies of many rows take longer than those
/// of few. Weight and load of a class are those with which the
/// rates of two copies at once, one of the class and one of an engine, come nearest to the measured ones.
/// @param machine  without times in its costs
/// @return  the machine's costs, with gap, weight and load of each class that was measured
[[nodiscard]] CopyCosts fit_sharing(const Topology& machine, std::span<const CostSample> samples);

}  // namespace tutti::internal
