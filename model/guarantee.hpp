#pragma once
#include "model/measurement.hpp"
#include "model/topology.hpp"

namespace tutti {

/// A fitted machine with guaranteed bandwidths so low that the graph says of no measured combination, no repetition of
/// one and no row of the table more than what was measured or stands there.
///
/// Rows hold for all GPUs that are alike on machines of up to MeasuredTable::kMostEnumerated GPUs, beyond that for
/// those that stand in them.
/// @pre every stream of a combination has a way (`has_ways`).
[[nodiscard]] Topology guarantee(const Topology& fitted, const CleanMeasurements& measurements,
                                 const MeasuredTable& table);

}  // namespace tutti
