#pragma once
#include <vector>

#include "model/measurement.hpp"
#include "model/rate_corrections.hpp"

namespace tutti {

struct MadeTable {
  MeasuredTable table;
  bool strained = false;  ///< GPUs are taken for symmetric that are less so than the measurements scatter
};

/// The table of a calibrated machine: GPUs whose exchange changes no corrected rate are symmetric; each combination up
/// to such exchanges is a row, with what was measured of it or else its corrected rates.
/// @pre at most MeasuredTable::kMostGpus GPUs.
[[nodiscard]] MadeTable make_table(std::size_t gpus, const std::vector<Combination>& combinations,
                                   const RateCorrections& corrections);

}  // namespace tutti
