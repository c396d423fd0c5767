#pragma once
#include <string>

#include "apps/tutti/reports/report.hpp"
#include "model/cost_fit.hpp"

namespace tutti {

/// What commands cost, and how well that explains the samples: the largest errors, the loosest promises, what was
/// longer than promised.
[[nodiscard]] std::string costs_text(const SetupTimes& setup, const CostFit& fit, const CostMeasurements& measured);

/// Every sample with what was predicted, promised and measured.
[[nodiscard]] Json costs_json(const CostFit& fit, const CostMeasurements& measured);

}  // namespace tutti
