#pragma once
#include <string>

#include "apps/lab/fits/cost_fit.hpp"
#include "apps/tutti/reports/report.hpp"

namespace tutti::internal {

/// The costs of commands, and how well they explain the samples: the largest errors, the loosest promises, the samples
/// that took longer than promised.
[[nodiscard]] std::string costs_text(const SetupTimes& setup, const CostFit& fit, const CostMeasurements& measured);

/// Every sample with its predicted, promised and measured times.
[[nodiscard]] Json costs_json(const CostFit& fit, const CostMeasurements& measured);

}  // namespace tutti::internal
