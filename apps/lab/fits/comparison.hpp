#pragma once
#include <string>
#include <vector>

#include "apps/lab/fits/measurement.hpp"
#include "model/base/quantile.hpp"
#include "model/batch/batch.hpp"
#include "model/machine/topology.hpp"
#include "model/sharing/rate_residual.hpp"

namespace tutti::internal {

/// A measured batch as one for this machine.
/// @pre every stream has a route (`first_memory_has`).
[[nodiscard]] Batch batch_of(const Topology& machine, const MeasuredBatch& measured);

/// Measured and predicted length of a batch whose streams all started at once.
struct BatchResidual {
  std::string place;
  double measured_ms = 0;
  double predicted_ms = 0;
  std::vector<double> streams;  ///< relative deviation of each stream's finish

  [[nodiscard]] double deviation() const { return predicted_ms / measured_ms - 1; }
};

/// Measurements and a machine's predictions of them.
struct Comparison {
  std::vector<Residual> rates;  ///< in rising order of `streams`
  std::vector<BatchResidual> batches;

  /// |predicted / measured - 1| of every rate; of every batch's length.
  [[nodiscard]] std::vector<double> rate_errors() const;
  [[nodiscard]] std::vector<double> length_errors() const;
};

/// Compares measurements with a machine's predictions, at nominal bandwidths.
/// @pre the measurements name GPUs of the machine, and every stream has a route.
[[nodiscard]] Comparison compare_with(const Topology& machine, const CleanMeasurements& measurements);

/// A machine in the published kind of model: links and one total for each direction, plain max-min; no shared
/// capacities, no weights, no table.
/// @source [VMS14] section 3.
[[nodiscard]] Topology plain_model(const Topology& machine);

/// A part of a machine that deviates from its calibration.
struct Moved {
  std::string what;   ///< with its unit, where that is not GB/s
  double before = 0;  ///< as calibrated
  double now = 0;     ///< as measured
};

/// The parts of a machine that moved since its calibration, the largest deviation first; empty where it still holds.
///
/// Single streams and the median of all rates of a stream may be off by 5 %. Totals of combinations may be off by 15 %
/// where the machine's table has them measured and by 40 % elsewhere: single combinations were that far off on hosts
/// whose calibration held. Lengths of batches may be off by 40 %, their median by 5 %.
[[nodiscard]] std::vector<Moved> find_drift(const Comparison& now);

}  // namespace tutti::internal
