#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/fits/comparison.hpp"
#include "apps/lab/fits/cost_fit.hpp"

namespace tutti::internal {

/// A calibrated machine, and how well it fits.
struct Calibration {
  Topology machine;                       ///< graph, guaranteed bandwidths, table, set-up time and provenance
  Comparison by_graph;                    ///< the machine without its table
  Comparison by_plain;                    ///< `plain_model`
  Comparison by_table;                    ///< the machine
  double noise = 0;                       ///< relative spread of a measured rate, as found
  double batch_speed = 0;                 ///< how much faster batches ran than steady rates, relative
  std::vector<std::string> left_out;      ///< measurements that could not be used
  std::vector<std::string> undetermined;  ///< a sentence for every figure that the measurements leave open
  std::optional<CostFit> costs;           ///< of commands; absent where they were not measured
};

/// Finds the machine that measurements come from.
///
/// The graph is fitted (`fit_graph`), then links that only further memories and copies between GPUs cross
/// (`fit_routes`); bandwidths are guaranteed that no measured combination, no repetition of one and no row of the table
/// undercuts; all combinations get corrected rates (`RateCorrections`); GPUs whose exchange changes none of them are
/// symmetric; each combination, up to such exchanges, becomes a row of the table, and so does each measured one with
/// copies of further memories or between GPUs. Costs of commands are fitted last
/// (`fit_costs`). Equal measurements give equal machines. Background flows of the base are kept: measurements are
/// without them.
///
/// @param base  the known part: vertices, links, domains; its bandwidths to and from the first memory are replaced, and
///              those of links that measured copies of other kinds cross. Absent: one memory and one processor, each
///              GPU on a link of its own.
/// @errors InvalidInput: nothing to use, a GPU that the machine does not have, a stream that is never measured, more
///         than kMostCalibrated GPUs.
[[nodiscard]] Expected<Calibration> calibrate(const Measurements& measurements, const std::optional<Topology>& base);

}  // namespace tutti::internal
