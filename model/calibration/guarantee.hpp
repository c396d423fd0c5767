#pragma once
#include "model/calibration/measurement.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// A fitted machine with guaranteed bandwidths so low that the graph predicts no more than any repetition of a measured
/// combination, and no more than any row of the table.
///
/// Rows hold for all symmetric GPUs: on machines of up to MeasuredTable::kMostEnumerated GPUs here, beyond that
/// once the table is built into the machine (`BelowTable`).
/// Copies of further memories and between GPUs are not in the table: the graph guarantees their measured rates.
/// @pre every stream of a combination has a route (`has_routes`); copies that were measured together can be active
///      together (`can_be_active`).
[[nodiscard]] Topology guarantee(const Topology& fitted, const CleanMeasurements& measurements,
                                 const MeasuredTable& table);

}  // namespace tutti::internal
