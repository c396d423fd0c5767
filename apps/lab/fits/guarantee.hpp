#pragma once
#include "apps/lab/fits/measurement.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// A fitted machine with guaranteed bandwidths so low that the graph predicts no more than any repetition of a measured
/// combination, and no more than any row of the table.
///
/// Rows hold for all symmetric GPUs: on machines of up to kMostEnumerated GPUs here, beyond that once the table is
/// built into the machine (`BelowTable`).
/// @pre every stream of a combination has a route (`first_memory_has`); copies that were measured together can be
///      active together (`can_be_active`).
[[nodiscard]] Topology guarantee(const Topology& fitted, const CleanMeasurements& measurements,
                                 const MeasuredTable& table);

}  // namespace tutti::internal
