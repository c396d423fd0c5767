#pragma once
#include <string>
#include <vector>

#include "apps/lab/fits/measurement.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// A sample, and its prediction with the fitted costs.
struct CostResidual {
  std::size_t sample = 0;  ///< its position among those that were measured
  double predicted = 0;    ///< ns
  double promised = 0;     ///< ns; for samples of less than 1 ms not below any repetition
  double median = 0;       ///< ns, measured
  double worst = 0;        ///< ns, measured
};

/// Costs of commands, fitted to measurements.
struct CostFit {
  SetupTimes setup;
  std::vector<CostResidual> residuals;
  std::vector<std::string> left_out;  ///< a sentence for every sample that could not be used
};

/// Finds the costs of a machine's commands.
///
/// A sample's time is the prediction without costs (rates and kernels' own times), plus the costs of one batch and one
/// gate, plus one cost per command. Nominal costs fit the medians, by least squares in which outliers count little.
/// Small copies get a rate of their own where that explains them better. Guaranteed costs, and rates of small copies,
/// are the least in all that bound 9 repetitions of 10 of each sample of less than 1 ms (a linear program). The excess
/// of the tenth is the cost `job`, once per job or batch that runs by itself. It covers `allowed` of each sample, as an
/// allowance for longer observation, and every pause of the host. The starts of gates alone decide how batch and gate
/// share the time before the first byte.
///
/// Where a GPU led batches, `led_first` of a class of copies is what bounds 9 repetitions of 10 of each sample in place
/// of `first`, where no other lane waits; `conductor` is what the medians are above the prediction there, the median
/// over these samples, and guaranteed what is left of the 9 repetitions; `conductor_lane` is the same of what each
/// further lane adds, since the queues of a GPU take turns; `conductor_job` covers `allowed`, and `led_first` what
/// copies between GPUs exceed that by: they wake links. `conductor_jobs` is the largest sum, over jobs of one sample in
/// a row, of what each takes longer than without hold-ups: hold-ups are rare, so that sum is far below that of as many
/// of `conductor_job`. `conductor_visit` is the share of a visit in bursts of them, guaranteed what bounds 9 bursts of
/// 10; what the others exceed that by is in `conductor_job`.
/// @pre the machine has bandwidths and a table, and no costs yet: its `setup` is empty
[[nodiscard]] CostFit fit_costs(const Topology& machine, const CostMeasurements& measured);

/// The worst repetition, plus its distance from the 99 % quantile.
[[nodiscard]] double allowed(std::vector<double> repetitions);

}  // namespace tutti::internal
