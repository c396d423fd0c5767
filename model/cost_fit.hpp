#pragma once
#include <string>
#include <vector>

#include "model/measurement.hpp"
#include "model/topology.hpp"

namespace tutti {

/// A sample beside what the costs make of it.
struct CostResidual {
  std::size_t sample = 0;  ///< its position among those that were measured
  double predicted = 0;    ///< ns
  double promised = 0;     ///< ns; of what takes less than 1 ms not below any repetition
  double median = 0;       ///< ns, measured
  double worst = 0;        ///< ns, measured
};

/// What commands cost by some measurements.
struct CostFit {
  SetupTimes setup;
  std::vector<CostResidual> residuals;
  std::vector<std::string> left_out;  ///< a sentence for every sample that could not be used
};

/// Finds the costs of a machine's commands.
///
/// A sample is explained by the machine's rates and kernels' own times (a prediction without costs), by the costs of a
/// batch and a gate once, and by one of each of its commands. Nominal costs fit the medians, by least squares in which
/// rows of another kind count little. Small copies get a rate of their own where that explains them better. Guaranteed
/// costs, and rates of small copies, are those that 9 repetitions of 10 of a sample of less than 1 ms do not exceed and
/// that promise the least in all beyond that (a linear program). What a sample may take beyond that is once a job's, or
/// a batch's that runs by itself: each worst repetition is taken to be as far behind its 99 % quantile again, as an
/// allowance for what a longer observation would show. And no pause of the host is longer. How batch and gate share
/// what precedes the first byte shows in the starts of gates alone.
/// @pre the machine has bandwidths and a table, and no costs yet: its `setup` is nothing
[[nodiscard]] CostFit fit_costs(const Topology& machine, const CostMeasurements& measured);

/// The worst of some repetitions and as far behind their 99 % quantile again.
[[nodiscard]] double allowed(std::vector<double> repetitions);

}  // namespace tutti
